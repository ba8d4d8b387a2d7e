# Part of agent.sh: garbage collection of dead serves, old files and forgotten runs.
# shellcheck shell=sh disable=SC2012,SC2013,SC2034,SC2046,SC2086,SC2154,SC3013,SC3044

# is_serve_alive NAME: whether that serve may be alive. One on another node touches its directory at least daily.
# Cleaned up by mistake, it starts nothing more: its prepared attempts are claimed and its directory is gone.
is_serve_alive() {
  its_node=''
  { read -r its_node <"$base/serve/$1/born"; } 2>/dev/null
  case $1,$its_node in
  "$boot8"-*,"$node" | "$boot8"-*,)
    set -- "${1#*-}"
    is_alive "${1%-*}" "${1#*-}"
    ;;
  *,"$node") return 1 ;;
  *) ! seen=$(find "$base/serve/$1" -mtime -1 2>/dev/null) || [ -n "$seen" ] ;;
  esac
}

# end_child: terminates the child of the attempt in $dir, if that runs on this node and boot; and its supervisor. A waiter
# tells that of the child's end, unless it is dying: so this does, too.
end_child() {
  if [ $origin != this_boot ]; then return 0; fi
  if { read -r pid its_start <"$dir/child"; } 2>/dev/null && is_alive "$pid" "$its_start"; then kill -TERM "$pid"; fi
  waiter=''
  if has_waiter; then waiter=y; fi
  if { read -r its_node its_boot pid its_start <"$dir/supervisor"; } 2>/dev/null && is_alive "$pid" "$its_start"; then
    if [ -z "$waiter" ]; then kill -TERM "$pid"; else { [ -p "$dir/note" ] && echo c 1<>"$dir/note"; } 2>/dev/null; fi
  fi
}

# end_orphans: terminates the children that wait for a request and whose attempt's directory was removed. Nobody can ask
# them any more, and nothing else would tell them.
end_orphans() {
  for pid in $(ls -ln /proc/[0-9]*/fd/0 2>/dev/null | LC_ALL=C sed -n \
    's|.* /proc/\([0-9]*\)/fd/0 -> .*/\.windlass/runs/[^/]*/go (deleted)$|\1|p'); do
    # A name may look like the rest of another line.
    case $(readlink "/proc/$pid/fd/0") in
    */.windlass/runs/*/'go (deleted)') kill -TERM "$pid" ;;
    esac
  done
}

# has_no_claim: whether the attempt in $dir has no claim, rather than a home that is unreachable.
has_no_claim() {
  [ ! -e "$dir/claim" ] && { read -r pid its_start <"$dir/waiter"; } 2>/dev/null && [ ! -e "$dir/claim" ]
}

# clean_up_serve NAME: ends the prepared attempts of a dead or ending serve. The claim decides races with a child that
# was just requested: an attempt claimed here never starts, one claimed by its child goes on.
clean_up_serve() {
  mv "$base/serve/$1" "$base/serve/.$1"
  its_node='' has_live_run=''
  { read -r its_node <"$base/serve/.$1/born"; } 2>/dev/null
  case $1,$its_node in
  "$name",* | "$boot8"-*,"$node" | "$boot8"-*,) origin=this_boot ;; # its own even while another node renames it
  *,"$node") origin=earlier_boot ;;
  *) origin=other_node ;; # there the same PIDs are other processes
  esac
  for dir in "$base/runs/$1"-*; do
    [ -d "$dir" ] || continue
    id=''
    # A claim of `-` is from an earlier cleanup that died before it finished.
    if create_exclusive "$dir/claim" - || { { read -r id <"$dir/claim"; } 2>/dev/null && [ "$id" = - ]; }; then
      # On another node the serve may be alive and end it itself; otherwise sweep_old removes it.
      if [ $origin = other_node ]; then continue; fi
      end_child
      rm -rf "$dir"
    elif find_end && { read -r its_node its_boot pid its_start <"$dir/supervisor"; } 2>/dev/null; then
      # The supervisor has only its emitter to notify, which is gone; on a full fifo it would block for ever.
      if [ $origin = this_boot ] && is_alive "$pid" "$its_start"; then kill -TERM "$pid"; fi
    elif [ $origin != other_node ] && has_no_claim; then
      # If no file can be created here, the child cannot create its claim either, and so starts nothing.
      end_child
      if has_no_claim; then rm -rf "$dir"; fi
    elif ! find_end; then
      has_live_run=y
    fi
  done
  if [ -n "$has_live_run" ] && [ $origin = this_boot ]; then start_heartbeat "$1" "$base/serve/.$1"; fi
  rm -rf "$base/serve/.$1"
}

# find_claims: sets claims to the ids of the runs that attempts are claimed for; `?` is one not written yet. The pattern
# makes the shell read each directory: an NFS client may have cached that a name is missing.
find_claims() {
  claims=' '
  for file in "$base"/runs/*/[c]laim; do
    id=''
    { read -r id <"$file"; } 2>/dev/null || [ -e "$file" ] || continue
    claims="$claims${id:-?} "
  done
}

# is_forgotten: whether $fence says that its run is forgotten.
is_forgotten() {
  token=''
  { read -r token _ <"$fence"; } 2>/dev/null
  [ "$token" = -forgotten ]
}

# sweep_batch ID…: cleans up dead serves, and removes the fences of these forgotten runs that no old request can need
# (decision 2). The order counts: serves come after the runs, as a later serve needs no fence; claims come after the
# births, as an attempt claims its run before its serve renews its birth.
sweep_batch() {
  forgotten=$*
  set --
  for dir in "$base"/serve/*; do
    if [ ! -d "$dir" ]; then continue; fi
    if ! is_serve_alive "${dir##*/}"; then
      clean_up_serve "${dir##*/}"
    elif [ -e "$dir/renewed" ]; then
      set -- "$@" "$dir/renewed"
    else
      set -- "$@" "$dir/born"
    fi
  done
  for dead in "$base"/serve/.[!.]*; do # its cleanup may have been killed; it is idempotent
    if [ -d "$dead" ]; then clean_up_serve "${dead##*/.}"; fi
  done
  older='' stale=''
  for id in $forgotten; do
    fence=$base/started/$id
    for birth in "$@"; do
      # To some shells a file is newer than one that they do not find.
      if ! { is_forgotten && [ "$birth" -nt "$fence" ] && is_forgotten; }; then continue 2; fi
    done
    older="$older $id"
  done
  if [ -z "$older" ]; then return 0; fi
  find_claims
  if [ ! -d "$base/runs/." ]; then return 0; fi # unreadable claims are not missing ones
  for id in $older; do
    case $claims in *" $id "* | *' ? '*) ;; *) stale="$stale \"\$base/started/$id\"" ;; esac
  done
  if [ -n "$stale" ]; then eval "rm -f $stale"; fi
}

# sweep: ends orphans, cleans up dead serves and removes the fences of forgotten runs, 500 at a time. Only the fence
# tells that its run is forgotten: an unreadable directory looks like a removed one.
sweep() {
  end_orphans
  ids='' size=0
  for fence in "$base"/started/*; do
    token='' attempt=''
    { read -r token attempt <"$fence"; } 2>/dev/null
    if [ "$token" != -forgotten ] || [ -d "$base/runs/$attempt" ]; then continue; fi
    case ${fence##*/} in *[!A-Za-z0-9-]*) continue ;; esac
    ids="$ids ${fence##*/}" size=$((size + 1))
    if [ $size -ge 500 ]; then
      sweep_batch $ids
      ids='' size=0
    fi
  done
  sweep_batch $ids
}

# is_agent_in_use FILE: whether a live serve may use this agent file; a serve that names no file may use any.
is_agent_in_use() {
  for dir in "$base"/serve/* "$base"/serve/.[!.]*; do
    [ -d "$dir" ] || continue
    for mark in "$dir"/agent-*.sh; do
      if [ ! -e "$mark" ] || [ "${mark##*/}" = "$1" ]; then return 0; fi
    done
  done
  return 1
}

# is_attempt_in_use ATTEMPT: whether a fence names that attempt, or the attempt may still create one. On another node it
# counts as alive while its supervisor's file, touched by the heartbeat, is less than a day old.
is_attempt_in_use() {
  dir=$base/runs/$1 id='' token='' fenced=''
  if [ ! -d "$dir/." ] || [ ! -d "$base/started/." ]; then return 0; fi # nothing that is unreadable is missing
  if [ -d "$base/serve/${1%-*}" ] || [ -d "$base/serve/.${1%-*}" ]; then return 0; fi
  { read -r id <"$dir/claim" && read -r token fenced <"$base/started/$id"; } 2>/dev/null
  if [ "$fenced" = "$1" ] || find_end; then return 0; fi
  { read -r its_node its_boot pid its_start <"$dir/supervisor"; } 2>/dev/null || {
    [ -e "$dir/supervisor" ] || [ ! -d "$dir/." ]
    return
  }
  if [ "$its_node" != "$node" ]; then
    [ -z "$(find "$dir/supervisor" -mtime +0 2>/dev/null)" ]
    return
  fi
  if [ "$its_boot" != "$boot" ]; then return 1; fi
  if is_alive "$pid" "$its_start"; then return 0; fi
  { read -r pid its_start <"$dir/child"; } 2>/dev/null && is_alive "$pid" "$its_start"
}

# sweep_old: removes what is older than a day and not in use: partly installed files, agent files, logins that no serve
# took, and attempts that died before their fence. A run with a fence is kept until its client forgets it.
sweep_old() {
  cd "$base" || return
  touch -c "$agent" # it is in use, however old
  find . ! -name . -prune -type f \( -name 'agent-*.sh' -o -name 'new.*' -o -name 'login.*' \) -mtime +0 | while IFS= read -r file; do
    is_agent_in_use "${file#./}" || rm -f "$file"
  done
  find runs ! -name runs -prune -type d -mtime +0 | while IFS= read -r file; do
    is_attempt_in_use "${file#runs/}" || rm -rf "$file"
  done
}

# mark_forgotten ID: marks the fence of the run, whose time sweep_batch compares, and adds its directory to dirs. False
# if the run may be alive. Overwrites the line, which needs no disk space.
mark_forgotten() {
  find_run_state "$1"
  case $run_state in
  running) return 1 ;;
  # Its heartbeat comes every 10 s. An hour exceeds the clock skew between two nodes.
  wrong_node) if [ -z "$(find "$dir/supervisor" -mmin +60 2>/dev/null)" ]; then return 1; fi ;;
  absent) return 0 ;;
  esac
  printf '%s\n' "-forgotten ${attempt:--}" 1<>"$fence"
  # The clock may have gone back since a serve was born or pinged.
  for birth in "$base"/serve/*/born "$base"/serve/*/renewed "$base"/serve/*/mark; do
    if [ -e "$birth" ] && [ "$birth" -nt "$fence" ]; then touch -r "$birth" "$fence"; fi
  done
  case $attempt in - | '' | *[!A-Za-z0-9._-]*) ;; *) dirs="$dirs \"\$base/runs/$attempt\"" ;; esac
}

# forget NUMBER ID…: removes ended runs, with one fork in all; answers with the positions of those it kept.
forget() {
  dirs='' number=$1 place=0 kept='' retries_left=40
  shift
  for id in "$@"; do
    place=$((place + 1))
    mark_forgotten "$id" || kept="$kept $place"
  done
  if [ -n "$dirs" ]; then eval "rm -rf $dirs"; fi
  answer "forgot $number$kept"
}
