import type { AlarmKind } from '../../model/alarm.ts';

/** The remedy for each kind of alarm, a summary of docs/runbook.md. */
const REMEDIES: Readonly<Record<AlarmKind, string>> = {
  platform_down: 'Fix the network, the credentials or the platform. Berth then continues by itself.',
  platform_suspect:
    'Check its key and project, and that no second server has a copy of the database; accept the losses only if the machines are gone.',
  platform_taken:
    'Stop one of the two servers for good. If this database is to be used on, stop both and run `berth restore --in-place`. Accept no losses and remove no orphans before.',
  platform_unmarked:
    'Make room for the mark, such as in the quota. Meanwhile run no second server with a copy of this database.',
  volumes_suspect: 'Check that the storage pool is available. Meanwhile no volume counts as deleted.',
  inventory_unknown: 'Check the platform with `berth doctor`. After ten minutes it stops selling.',
  host_unknown: 'Put the host back into the configuration. Accept the losses only if it is gone for good.',
  losses_held: 'Compare with the platform’s own list. Accept the losses only if the machines are gone.',
  creates_refused:
    'Find the cause on the host. One create from time to time tries it; `berth uncordon` ends it at once.',
  orphan_machine:
    'Inspect it on the platform: it may cost money. Then `berth orphans adopt`, `release` or `rm`.',
  orphan_volume: 'Inspect it on the platform: it may hold data. `berth orphans rm` removes it.',
  listing_incomplete:
    'Fix the platform, or the host that does not answer: until the listing is complete, lost rows read 404.',
  row_lost: 'Create its account if that is missing. Otherwise `berth orphans adopt`, `release` or `rm`.',
  machine_paused: 'Fix the cause that it names. Once it is STOPPED, let the tenant’s start resume it.',
  machine_fault: 'Follow its remedy. The instance stays ONLINE meanwhile.',
  machine_gone:
    'Find out on the platform who or what removed it. The alarm ends with the DELETE of its instance, or after a day.',
  resource_renamed:
    'Restore its name when you can. Meanwhile Berth tracks it under the new name, and its DELETE works.',
  resource_copied:
    'Delete the copy, or remove Berth’s tag from it. Berth never counts, adopts or removes it.',
  leftover:
    'Inspect the parts that it names: they may hold data. They are removed with the DELETE of what they belonged to; if nothing owns them, by `berth orphans rm`.',
  endpoint_shared:
    'Find out on the platform which machine has the address, and correct the endpoint of the other.',
  disk_lost: 'Find out what removed it, and check whether other machines on its host still have their disks.',
  start_failed: 'Find the cause on the platform. The alarm ends after a successful start, or after a day.',
  step_failing: 'Fix the cause given by the last attempt; the step then continues by itself.',
  phase_overdue:
    'Look on the platform why this phase takes so long. Berth keeps asking; the alarm ends with the phase.',
  call_stuck: 'Check the platform. If its driver hangs, restart the server that the alarm names.',
  clock_skew: 'Check NTP on this server and on the database server. No work is done meanwhile.',
  certificate_ending: 'Renew it. The API and providers need no restart; the files of Incus do.',
  reload_refused:
    'Fix the file that it names, then run `berth reload`. Do not restart the server before that.',
  disk_low: 'Free some disk space before the disk is full.',
  store_unwritable: 'Free some disk space, or bring PostgreSQL back. No restart is needed.',
};

export function remedyOf(kind: AlarmKind): string {
  return REMEDIES[kind];
}
