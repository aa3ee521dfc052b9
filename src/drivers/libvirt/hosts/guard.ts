import type { VirshProblem } from '../errors.ts';

/**
 * A function of POSIX `sh`: `fence FOLDER RESOURCE FENCE` takes the lock of the resource, which is held for as long as the
 * shell and what it starts run, and ends the shell unless FENCE is at least the highest that was seen. A file that was
 * removed while its lock was waited for is no lock: it is opened again.
 */
export const FENCE = [
  'fence() { command -v flock >/dev/null || { echo "there is no flock" >&2; exit 84; }',
  'mkdir -p "$1" 2>/dev/null; file=$1/$2',
  '{ [ -w "$1" ] && { [ -w "$file" ] || [ ! -e "$file" ]; }; } || { echo "$file cannot be written" >&2; exit 84; }',
  'while exec 9<>"$file"; do flock -w 10 9 || { echo "another command for $2 is still running" >&2; exit 81; }',
  '[ "$file" -ef /proc/self/fd/9 ] && break; done',
  'seen=0; IFS= read -r seen <&9; case $seen in ""|*[!0-9]*) seen=0 ;; esac',
  '[ "$3" -ge "$seen" ] || { echo "a later claim of $2 was here: $seen, and not $3" >&2; exit 80; }',
  // In place and in one write: whatever ends this shell, the file has the old fence or the new one.
  '[ "$3" -eq "$seen" ] || printf "%020d\\n" "$3" 1<>"$file"; }',
].join('; ');

/**
 * One call of virsh on the host itself: `GUARD URI FOLDER RESOURCE FENCE UUID RUN PROGRAM ARGUMENT…`. Without FENCE none is
 * compared; with RUN, the number of the domain as it runs, nothing is done in another run. On one line, for any login shell.
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

/** What a status of the scripts means; others are of the program itself. */
export const guardProblems: Readonly<Record<number, VirshProblem>> = {
  80: 'stale',
  81: 'busy',
  82: 'not_running',
  84: 'unprepared',
};

/** The domain as it runs since its last start, by libvirt's number for that. */
export interface Run {
  uuid: string;
  id: string;
}

/** What limits the commands of one call. */
export interface Limits {
  /** What the host keeps the fence by. */
  resource: string;
  fence: number;
  signal: AbortSignal;
  /** To be called when the command is about to begin. @throws {VirshError} `expired` once the time of the call is over */
  begin(): void;
}

/** What is compared on the host, in the same command. */
export interface Comparison {
  fence?: Pick<Limits, 'resource' | 'fence'> | undefined;
  run?: Run | undefined;
}

/** The command for the host; `reads`: its input comes by a socket, which cannot be opened as `/dev/stdin`. */
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
