/** What each shell evaluates: it asks `windlass complete` for the words that may stand where the cursor is. */
export const COMPLETION_SCRIPTS = {
  bash: `_windlass() {
  local IFS=$'\\n'
  COMPREPLY=($(windlass complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _windlass windlass
`,
  zsh: `#compdef windlass
_windlass() {
  local -a found
  found=("\${(@f)$(windlass complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n $found[1] ]]; then compadd -- $found; else _files; fi
}
if (( $+functions[compdef] )); then compdef _windlass windlass; fi
`,
  fish: `function __windlass_words
  set -l found (windlass complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
  if set -q found[1]
    printf '%s\\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c windlass -f -a '(__windlass_words)'
`,
} as const;
