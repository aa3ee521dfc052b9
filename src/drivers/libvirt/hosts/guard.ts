import type { VirshProblem } from '../errors.ts';

/**
 * A POSIX `sh` function. `fence FOLDER RESOURCE FENCE` locks the resource until the shell and its children end, and
 * exits the shell if FENCE is below the highest seen. If the file is removed while the lock is awaited, the file is
 * opened again.
 */
export const FENCE = [
  'fence() { command -v flock >/dev/null || { echo "there is no flock" >&2; exit 84; }',
  'mkdir -p "$1" 2>/dev/null; file=$1/$2',
  '{ [ -w "$1" ] && { [ -w "$file" ] || [ ! -e "$file" ]; }; } || { echo "$file cannot be written" >&2; exit 84; }',
  'while exec 9<>"$file"; do flock -w 10 9 || { echo "another command for $2 is still running" >&2; exit 81; }',
  '[ "$file" -ef /proc/self/fd/9 ] && break; done',
  'seen=0; IFS= read -r seen <&9; case $seen in ""|*[!0-9]*) seen=0 ;; esac',
  '[ "$3" -ge "$seen" ] || { echo "a later claim of $2 was seen: $seen, not $3" >&2; exit 80; }',
  // The fence is written in place with one write: if the shell is killed, the file has either the old or the new fence.
  '[ "$3" -eq "$seen" ] || printf "%020d\\n" "$3" 1<>"$file"; }',
].join('; ');

/**
 * One virsh call on the host: `GUARD URI FOLDER RESOURCE FENCE UUID RUN PROGRAM ARGUMENT…`. An empty FENCE is not
 * checked. With RUN, the id of the running domain, the command fails in another run. The script is on one line, for any
 * login shell.
 */
const GUARD = [
  FENCE,
  'LC_ALL=C.UTF-8 LANGUAGE=C; export LC_ALL LANGUAGE',
  'uri=$1 folder=$2 resource=$3 fence=$4 uuid=$5 run=$6 program=$7; shift 7',
  'command -v "$program" >/dev/null || { echo "there is no virsh" >&2; exit 84; }',
  '[ -z "$fence" ] || fence "$folder" "$resource" "$fence"',
  '[ -z "$run" ] || { now=$("$program" -q -c "$uri" domid -- "$uuid" </dev/null) || exit 1; [ "$now" = "$run" ] || { echo "that run is over" >&2; exit 82; }; }',
  '"$program" -q -c "$uri" "$@"',
].join('; ');

/** Exit statuses of the scripts. Any other status comes from the program itself. */
export const guardProblems: Readonly<Record<number, VirshProblem>> = {
  80: 'stale',
  81: 'busy',
  82: 'not_running',
  84: 'unprepared',
};

/** A run of the domain since its last start, identified by libvirt's id. */
export interface Run {
  uuid: string;
  id: string;
}

/** The limits of a call's commands. */
export interface Limits {
  /** The key under which the host stores the fence. */
  resource: string;
  fence: number;
  signal: AbortSignal;
  /** Call it just before the command begins. @throws {VirshError} `expired` after the deadline or abort of the call */
  begin(): void;
}

/** Conditions that the host checks in the same command. */
export interface Comparison {
  fence?: Pick<Limits, 'resource' | 'fence'> | undefined;
  run?: Run | undefined;
}

/** The command for the host. `reads`: its input is a socket, which cannot be opened as `/dev/stdin`. */
export function guarded(
  [program, uri, stateDir]: readonly [program: string, uri: string, stateDir: string],
  { fence, run }: Comparison,
  args: readonly string[],
  reads: boolean,
): string[] {
  const of = [fence?.resource ?? '', fence === undefined ? '' : String(fence.fence)];
  const script = reads ? `cat | { ${GUARD}; }` : GUARD;
  return [
    ...['sh', '-c', script, 'berth', uri, `${stateDir}/fences`, ...of],
    ...[run?.uuid ?? '', run?.id ?? '', program, ...args],
  ];
}
