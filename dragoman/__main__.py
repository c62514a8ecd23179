"""`python -m dragoman`: the command `dragoman`, for environments whose scripts are not on the path."""

from dragoman.proxy.cli.main import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
