"""`completion`: the script by which a shell completes what is typed."""

from typing import Final

import click

from riverlog.cli.terminal.options import Argument

BASH: Final = r"""# eval "$(riverlog completion bash)"
_riverlog() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == :files* ]]; then compopt -o default; COMPREPLY=(); return; fi
    COMPREPLY+=("${line%%$'\t'*}")
  done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
  return 0
}
complete -F _riverlog riverlog streaming-system
"""
ZSH: Final = r"""# eval "$(riverlog completion zsh)"
_riverlog() {
  local line
  local -a found
  while IFS= read -r line; do
    [[ $line == :files* ]] && { _files; return }
    found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done < <("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
  _describe riverlog found
}
compdef _riverlog riverlog streaming-system
"""
FISH: Final = r"""# riverlog completion fish | source
function __riverlog_complete
  set -l found (riverlog __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)
  if string match -q ':files*' -- $found[1]
    __fish_complete_path (commandline -ct)
  else
    printf '%s\n' $found
  end
end
complete -c riverlog -f -a '(__riverlog_complete)'
complete -c streaming-system -f -a '(__riverlog_complete)'
"""
SCRIPTS: Final = {"bash": BASH, "zsh": ZSH, "fish": FISH}


@click.command
@click.argument(
    "shell", cls=Argument, type=click.Choice(list(SCRIPTS)), metavar="bash|zsh|fish", help="The shell that you use."
)
def completion(shell: str) -> None:
    """Print the script for completion in a shell.

    Put `eval "$(riverlog completion bash)"` into ~/.bashrc, the same with zsh into ~/.zshrc, or `riverlog completion
    fish | source` into ~/.config/fish/config.fish. Names of topics and groups are asked of the cluster.
    """
    print(SCRIPTS[shell], end="")
