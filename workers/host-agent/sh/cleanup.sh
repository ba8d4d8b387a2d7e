# Part of agent.sh: what is left over by others, and what is forgotten.
# shellcheck shell=sh disable=SC2013,SC2034,SC2046,SC2086,SC2154,SC3013,SC3044

# is_serving NAME: whether that serve may live. One of another boot has ended. One of another node shows some sign of life
# at least once a day; retired in error it can start nothing any more: what it has prepared is claimed, its directory gone.
is_serving() {
  where=''
  { read -r where <"$base/serve/$1/born"; } 2>/dev/null
  case $1,$where in
  "$boot8"-*,"$node" | "$boot8"-*,)
    set -- "${1#*-}"
    is_alive "${1%-*}" "${1#*-}"
    ;;
  *,"$node") return 1 ;;
  *) ! seen=$(find "$base/serve/$1" -mtime -1 2>/dev/null) || [ -n "$seen" ] ;;
  esac
}

# end_body: of the attempt in $dir, where this is its node.
end_body() {
  pid=0 its_start=''
  { read -r pid its_start <"$dir/body"; } 2>/dev/null
  if [ $whose = ours ] && is_alive "$pid" "$its_start"; then kill -TERM "$pid"; fi
}

# retire NAME: ends what a dead or ending serve kept prepared. A claim decides between it and a body that was just told
# to start: what is claimed here never starts, what its body claimed lives on.
retire() {
  mv "$base/serve/$1" "$base/serve/.$1"
  where='' lives=''
  { read -r where <"$base/serve/.$1/born"; } 2>/dev/null
  case $1,$where in
  "$name",* | "$boot8"-*,"$node" | "$boot8"-*,) whose=ours ;; # its own, too, where another node retires it at this moment
  *,"$node") whose=past ;;
  *) whose=far ;; # where the same numbers are other processes
  esac
  for dir in "$base/runs/$1"-*; do
    [ -d "$dir" ] || continue
    id=''
    # A claim of `-` was made here before, by one that died before it went on.
    if create "$dir/claim" - || { { read -r id <"$dir/claim"; } 2>/dev/null && [ "$id" = - ]; }; then
      # Of another node it stays for a serve that lives after all to find and to end; sweep_old takes it.
      if [ $whose = far ]; then continue; fi
      end_body
      rm -rf "$dir"
    elif find_end && { read -r where its_boot pid its_start <"$dir/minder"; } 2>/dev/null; then
      # All it has left to do is to tell the emitter that is gone; a full fifo would hold it for ever.
      if [ $whose = ours ] && is_alive "$pid" "$its_start"; then kill -TERM "$pid"; fi
    elif [ $whose != far ] && [ ! -e "$dir/claim" ]; then
      # Where no file can be made its body cannot make one either, and so start nothing.
      end_body
      if [ ! -e "$dir/claim" ]; then rm -rf "$dir"; fi
    elif ! find_end; then
      lives=y
    fi
  done
  if [ -n "$lives" ] && [ $whose = ours ]; then start_heart "$1" "$base/serve/.$1"; fi
  rm -rf "$base/serve/.$1"
}

# A fence outlives its run's directory until every serve that was alive when it was forgotten has ended, this one
# included: each could still have an old `run` of it in its pipes. A serve born later is spoken to by clients that
# know of the end. Forgetting touches the fence, so the two times compare.
sweep() {
  set --
  for dir in "$base"/serve/*; do
    [ -d "$dir" ] || continue
    if is_serving "${dir##*/}"; then set -- "$@" "$dir/born"; else retire "${dir##*/}"; fi
  done
  for retired in "$base"/serve/.[!.]*; do # its retirement may have been killed half-way; doing it twice is harmless
    if [ -d "$retired" ]; then retire "${retired##*/.}"; fi
  done
  if [ ! -d "$base/runs/." ]; then return 0; fi # what cannot be seen there is not gone
  for fence in "$base"/started/*; do
    token='' dn=''
    { read -r token dn <"$fence"; } 2>/dev/null
    if [ -z "$dn" ]; then continue; fi
    if [ "$token" = -stopped ] || [ -d "$base/runs/$dn" ]; then continue; fi
    for born in "$@"; do
      [ "$born" -nt "$fence" ] || continue 2
    done
    rm -f "$fence"
  done
}

# is_read FILE: whether a serve may live that reads this agent. Agents that do not say which file they are may be any.
is_read() {
  for dir in "$base"/serve/* "$base"/serve/.[!.]*; do
    [ -d "$dir" ] || continue
    for mark in "$dir"/agent-*.sh; do
      if [ ! -e "$mark" ] || [ "${mark##*/}" = "$1" ]; then return 0; fi
    done
  done
  return 1
}

# is_started DIR: whether a fence names that attempt, or it may yet make one. Whether its processes live is
# known of another node by the age of what its heart touches.
is_started() {
  dir=$base/runs/$1 id='' token='' fenced=''
  if [ -d "$base/serve/${1%-*}" ] || [ -d "$base/serve/.${1%-*}" ]; then return 0; fi
  { read -r id <"$dir/claim" && read -r token fenced <"$base/started/$id"; } 2>/dev/null
  if [ "$fenced" = "$1" ] || find_end; then return 0; fi
  { read -r where its_boot pid its_start <"$dir/minder"; } 2>/dev/null || return 1
  if [ "$where" != "$node" ]; then
    [ -z "$(find "$dir/minder" -mtime +0 2>/dev/null)" ]
    return
  fi
  if [ "$its_boot" != "$boot" ]; then return 1; fi
  if is_alive "$pid" "$its_start"; then return 0; fi
  { read -r pid its_start <"$dir/body"; } 2>/dev/null && is_alive "$pid" "$its_start"
}

# sweep_old: what was cut off more than a day ago: half-installed files, other versions' agents that nobody reads, and
# attempts that died before they had a fence. A run that has one may be asked for, however old it is: whoever started it
# forgets it.
sweep_old() {
  cd "$base" || return
  touch -c "$agent" # installed long ago, and in use
  find . ! -name . -prune -type f \( -name 'agent-*.sh' -o -name 'new.*' \) -mtime +0 | while IFS= read -r file; do
    is_read "${file#./}" || rm -f "$file"
  done
  find runs ! -name runs -prune -type d -mtime +0 | while IFS= read -r file; do
    is_started "${file#runs/}" || rm -rf "$file"
  done
}

# may_forget ID: false where it may still live. Adds to fences and dirs what is to be removed.
may_forget() {
  judge "$1"
  case $verdict in
  running) return 1 ;;
  # Its heart beats every 10 s: an hour is more than two nodes' clocks differ by.
  wrong_node) if [ -z "$(find "$dir/minder" -mmin +60 2>/dev/null)" ]; then return 1; fi ;;
  absent) return 0 ;;
  esac
  # A fence that names no directory counts as forgotten.
  if [ -z "$dn" ] || [ "$dn" = - ]; then echo '-forgotten -' >"$fence"; fi
  fences="$fences \"\$base/started/$1\""
  case $dn in - | '' | *[!A-Za-z0-9._-]*) ;; *) dirs="$dirs \"\$base/runs/$dn\"" ;; esac
}

# remove_forgotten: the fences are touched before a directory goes, so that none is older than what forgot it.
remove_forgotten() {
  if [ -n "$fences" ]; then eval "touch -c $fences"; fi
  if [ -n "$dirs" ]; then eval "rm -rf $dirs"; fi
}

# forget NUMBER ID…: two forks for all of them. The answer has the places of those that are kept.
forget() {
  fences='' dirs='' number=$1 place=0 kept='' patience=40
  shift
  for id in "$@"; do
    place=$((place + 1))
    may_forget "$id" || kept="$kept $place"
  done
  remove_forgotten
  say "forgot $number$kept"
}
