// What the scripts of programs share: a configuration of the user's, and a run of the program in the folder of the check.

import { spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { BREAKDOWN, BROKEN, FAILING, FAILURE, SENTENCE, check } from "./checks.mjs";

const PATIENCE = 60; // seconds for one run of a program
export const NOTE = "The caravan leaves at noon.";

/** Write a file below the folder of this run; in a configuration, BASE_URL, API_KEY and MODEL become quoted texts. */
export async function writeConfig(path, text) {
  await mkdir(dirname(resolve(path)), { recursive: true });
  const filled = text.trimStart().replace(/\b(?:BASE_URL|ORIGIN|API_KEY|MODEL)\b/g, (name) => JSON.stringify(process.env[name]));
  await writeFile(path, filled);
}

/** Return the message that makes a fake call a tool of the program. */
export function callTool(name, given) {
  return `What does note.txt say? fake:tools(name=${name}, arguments=${JSON.stringify(given)})`;
}

/** Run a program to its end. Returns all that it printed, and its exit status. What it leaves behind ends with the script. */
export function runProgram([command, ...given], { input = "", env = {} } = {}) {
  return new Promise((done, fail) => {
    const child = spawn(command, given, { env: { ...process.env, ...env } });
    const texts = [];
    const outputs = [child.stdout, child.stderr];
    const timer = setTimeout(() => child.kill("SIGKILL"), (PATIENCE - 5) * 1000);
    for (const output of outputs) output.setEncoding("utf8").on("data", (text) => texts.push(text));
    child.on("error", fail);
    child.on("exit", () => setTimeout(() => outputs.forEach((output) => output.destroy()), 2000).unref()); // a helper may keep them
    child.on("close", (status, signal) => {
      clearTimeout(timer);
      done({ text: texts.join(""), status: status ?? signal });
    });
    child.stdin.on("error", () => {}); // a program that reads nothing may close it
    child.stdin.end(input);
  });
}

/** Check a coding agent; `run(prompt)` returns what it printed, and `task` makes it read note.txt with a tool of its own. */
export async function checkAgent(run, task) {
  await writeFile("note.txt", NOTE);
  const last = async (prompt) => strip((await run(prompt)).text);
  await check("stream", async () => showsInOrder(await last("Say hello to me. fake:text"), SENTENCE), PATIENCE);
  await check("agent", async () => showsInOrder(await last(task), "The tools said:", NOTE), PATIENCE);
  await check("errors", async () => showsInOrder(await last(FAILING), FAILURE), PATIENCE);
  return last;
}

/** Check that an agent shows why a stream failed; `last` is what checkAgent returned. */
export async function checkBrokenStreams(last) {
  await check("errors in streams", async () => showsInOrder(await last(BROKEN), BREAKDOWN), PATIENCE);
}

/** Throw unless the parts come one after the other, perhaps with other text between them; show the end of the text. */
function showsInOrder(text, ...parts) {
  let place = 0;
  for (const part of parts) {
    place = text.indexOf(part, place) + 1;
    if (place === 0) throw new Error(`no ${JSON.stringify(part)}; the end is ${JSON.stringify(text.slice(-400))}`);
  }
}

/** Remove colors, and the warnings of Node with their stacks. */
function strip(text) {
  return text.replace(/\x1b\[[0-9;]*m/g, "").replace(/^(.*Warning: .*| +at .*)\n/gm, "").trim();
}
