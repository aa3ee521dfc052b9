import type { FailedCheck } from '../compose/drivers/driver-test.ts';

/** How to correct a driver, by the failed check. */
export const remedies: Readonly<Record<string, string>> = {
  manifest: 'Correct the capabilities in the answer to info.',
  'never-made': 'Answer get with gone if your platform reports for certain that it has no such ref.',
  listing:
    'List everything with a ref, from the platform itself and not from memory, each with its own endpoint; omit removed ones, and answer get from the same source.',
  'avoid-hosts': 'Leave out the hosts of spec.avoid_hosts; where no other has room, fail with code capacity.',
  create:
    'Answer create with pending until the machine runs and has an endpoint, then with done. A phase is one line, its deadline in milliseconds since the epoch.',
  'create-visible':
    'Show a machine in get and list as building from its first create on, or declare create_visible_within_ms.',
  'create-adopts': 'Begin create by looking for the ref, and continue with the machine that exists.',
  'create-at-once':
    'Let the platform refuse a second resource of the same name, or hold a lock for the ref while you make it.',
  'create-reopened': 'Keep nothing in memory that a create needs: find the machine by its ref.',
  crashes:
    'Treat a call with cookie null as one that may already be in progress: look for the machine first, then continue.',
  notes: 'Keep the note with the machine, byte for byte, from its creation on; or say keeps_notes: false.',
  destroy:
    'Answer destroy with done only when the machine and all that belongs to it (disk, ports, addresses, forwards) are gone; get is gone then.',
  'destroy-building':
    'Cancel the build, or answer pending until it has finished and then destroy the machine.',
  'destroy-again': 'Answer destroy with done if there is no such machine.',
  capacity:
    'Count before you make anything, and fail with code capacity and side_effect none if there is no room.',
  inventory:
    'Count from the current state of the platform. Count each offer as if it were the only one sold.',
  impossible: 'Check what the spec asks for before you make anything, and fail with the code that says why.',
  unreachable: 'Answer get and list with unknown where the platform does not answer.',
  'attempt-destroy':
    'Compare the whole ref: a ref that begins with another one is another machine. Name all that belongs to a machine by its whole ref.',
  'volume-attempt-destroy': 'Compare the whole ref: a ref that begins with another one is another volume.',
  place:
    'Make the machine on spec.host, and show that as its host; where it has no room, fail with code capacity.',
  'place-bound': 'Where spec.host is set, answer place with that host alone, or refuse it.',
  'place-avoid':
    'Leave out the hosts of avoid_hosts; where no other has room, answer refused with code capacity.',
  'volume-place':
    'Make the volume on spec.host, and show that as its host; where it has no room, fail with code capacity.',
  'volume-place-bound': 'Where spec.host is set, answer volumes.place with that host alone, or refuse it.',
  'volume-place-avoid':
    'Leave out the hosts of avoid_hosts; where no other has room, answer refused with code capacity.',
  deadline: 'Compare expires_at with the clock before each thing that you begin, and fail with transient.',
  'cancel-before': 'Begin nothing of a request that was cancelled.',
  cancel:
    'When a request is cancelled, stop its work, begin nothing more, and answer it; over HTTP, when its connection is closed.',
  fence:
    'Keep the highest fence of each ref where the change happens, and refuse a lower one in the same step; or say fences: false.',
  'stop-start':
    'Keep disk, address and created_at over stop and start; answer stop of a stopped machine with done; show it in get and list as stopped.',
  'power-of-none': 'Fail stop and start with code gone and side_effect none if there is no such machine.',
  'destroy-stopped': 'Destroy a machine in any power state.',
  'disown-running': 'Fail disown with conflict and side_effect none where the machine is not stopped.',
  disown:
    'Remove the ref from the machine and its disks, or mark it as released, so that get, list and destroy skip it; change nothing else, and answer done if there is no such machine.',
  restart: 'Remember the restart_id with the machine: the same id resets it once.',
  'restart-of-none': 'Fail restart with gone if there is no machine, and with conflict if it is not running.',
  endpoint: 'Give each machine an address and port of its own, and keep them for its life.',
  keys: 'Put every line of ssh_keys into authorized_keys of the login user.',
  'disk-kept': 'Stop and restart without recreating the disk.',
  'cloud-init': 'Hand user_data and vendor_data to the machine as they are; or say cloud_init_bytes: 0.',
  'console-tail': 'Answer console with at most the last 16 KiB, and with null if there is no machine.',
  'volume-lifecycle': 'Make, list and destroy volumes by their ref; a repeated call succeeds.',
  'volume-crashes':
    'Look for the volume and its attachment first in each call, and continue from their state.',
  'volume-attach':
    'Attaching an attached volume and detaching a detached one succeed. Where attach_volume is cold, a running machine is a conflict.',
  'volume-resize': 'Grow to size_gb: answer done if the volume has that size, and invalid if it is larger.',
  'volume-resize-attached':
    'Say in resize_volume whether a volume grows while it is attached, and refuse it with conflict where not.',
  'writer-mark':
    'Keep the text of each key on the platform, byte for byte, where every server sees it; or say writer_mark: false.',
  'volume-usage': 'Answer `volumes.usage` if and only if the manifest says `volumeUsage`, with whole bytes.',
  'volume-survives': 'Detach the volumes of a machine that is destroyed, and keep them.',
  'volume-data': 'Keep the data of a volume over detach and attach.',
  'volume-copy':
    'Make the copy under the ref of its spec, keep the original, and answer done when it is complete or already exists.',
  'volume-destroy-attached': 'Detach a volume that is destroyed.',
  'too-late':
    'Compare expires_at with the clock before you begin a step, and fail with transient and side_effect none.',
  'destroy-silences':
    'End all processes of the machine and its forwards before you answer destroy with done: sessions that are open, too.',
  'machines-survive':
    'Start long-lived processes in a session of their own (setsid, start_new_session, detached), or let a service run the machines.',
  output:
    'Write logs to standard error, also those of the programs and libraries that you call; answer each request once, with its id.',
  ends: 'End the program at the end of standard input, also while a request is in progress.',
};

/** How to correct a driver that lost an answer, for any check. */
const lossRemedies: Readonly<Record<NonNullable<FailedCheck['loss']>, string>> = {
  error:
    'Correct the cause in the error. If your platform refused a step, answer it with `failed` and a code, so that Berth knows what to do.',
  end: 'Catch each failure of a request, and answer it with `error`. The output on standard error shows where the program ended.',
  silence:
    'Answer each request within --timeout-s, exactly once and flushed; where a step takes longer, begin it, answer `pending`, and check its progress when the request comes again.',
  invalid:
    'Correct the field that is named; openapi/driver-protocol.json has each answer, such as `create.answer` and `Machine`.',
};

/** For a driver that comes with Berth, whose user can change only the platform. */
const OF_BERTH =
  'Run `berth doctor` with the same configuration. If it finds nothing, report this output as a fault of Berth.';

/** Returns how to correct a failed check. For a check without a remedy it is a link to the guide. */
export function remedyOf(id: string, result: Pick<FailedCheck, 'during' | 'loss'>, isExec: boolean): string {
  if (!isExec) return OF_BERTH;
  if (result.loss !== undefined) return lossRemedies[result.loss];
  const about = result.during === 'removal' ? 'destroy-again' : id;
  return remedies[about] ?? 'See docs/how-to/driver-in-any-language.md.';
}
