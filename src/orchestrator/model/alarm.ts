import type { AlarmKinds } from '../../operator-kit/alarms/model.ts';
import { DAY_MS } from '../../ports/clock.ts';

/**
 * The kinds of alarms. An alarm is open until its cause is gone. The subject of each kind:
 * - a platform: `platform_down`, `platform_suspect`, `platform_taken`, `platform_unmarked`, `volumes_suspect`,
 *   `inventory_unknown`, `listing_incomplete`
 * - PLATFORM/HOST: `host_unknown`; a platform or PLATFORM/HOST: `losses_held`; PLATFORM/HOST or PLATFORM/OFFER:
 *   `creates_refused`
 * - an owner ref: `orphan_machine`, `orphan_volume`, `row_lost`, `leftover`
 * - an instance or a volume: `step_failing`, `phase_overdue`, `call_stuck`, `resource_renamed`
 * - an instance: `start_failed`, `machine_paused`, `machine_fault`, `machine_gone`, `disk_lost`
 * - a name on the platform: `resource_copied`; ADDRESS:PORT: `endpoint_shared`
 * - a server: `clock_skew`, `reload_refused`, `disk_low`, `backup_failed`; a server or PLATFORM/USE: `certificate_ending`
 * - a route of alarms: `alarm_route_failing`; the database: `store_unwritable`
 * The kinds of `raiseFolded` and `raiseOne` also have one alarm with the platform as subject, for more than a hundred resources.
 */
export const alarmKindFacts = {
  platform_down: { severity: 'critical', runbook: 'the-platform-does-not-answer-or-cannot-be-believed' },
  platform_suspect: { severity: 'critical', runbook: 'the-platform-does-not-answer-or-cannot-be-believed' },
  platform_taken: { severity: 'critical', runbook: 'a-second-server-works-on-the-platform' },
  platform_unmarked: { severity: 'warning', runbook: 'a-second-server-works-on-the-platform' },
  volumes_suspect: { severity: 'critical', runbook: 'too-many-volumes-are-missing' },
  inventory_unknown: { severity: 'warning', runbook: 'the-platform-does-not-count-its-free-units' },
  host_unknown: { severity: 'critical', runbook: 'a-host-is-no-longer-known' },
  losses_held: { severity: 'critical', runbook: 'instances-are-held-beyond-the-cap-on-losses' },
  creates_refused: { severity: 'critical', runbook: 'a-host-refuses-creates' },
  orphan_machine: { severity: 'critical', runbook: 'a-machine-with-our-tag-has-no-instance' },
  orphan_volume: { severity: 'critical', runbook: 'a-machine-with-our-tag-has-no-instance' },
  row_lost: { severity: 'critical', runbook: 'a-resource-has-no-row' },
  listing_incomplete: { severity: 'warning', runbook: 'a-resource-has-no-row' },
  step_failing: { severity: 'critical', runbook: 'a-step-of-work-keeps-failing' },
  phase_overdue: { severity: 'critical', runbook: 'a-step-of-work-keeps-failing' },
  call_stuck: { severity: 'warning', runbook: 'a-step-of-work-keeps-failing' },
  start_failed: {
    severity: 'critical',
    runbook: 'a-machine-is-paused-or-runs-with-a-fault',
    openForMs: DAY_MS,
  },
  machine_paused: { severity: 'critical', runbook: 'a-machine-is-paused-or-runs-with-a-fault' },
  machine_fault: { severity: 'critical', runbook: 'a-machine-is-paused-or-runs-with-a-fault' },
  machine_gone: {
    severity: 'critical',
    runbook: 'a-machine-is-paused-or-runs-with-a-fault',
    openForMs: DAY_MS,
  },
  resource_renamed: { severity: 'warning', runbook: 'manual-changes-on-the-platform' },
  resource_copied: { severity: 'warning', runbook: 'manual-changes-on-the-platform' },
  leftover: { severity: 'warning', runbook: 'manual-changes-on-the-platform' },
  endpoint_shared: { severity: 'warning', runbook: 'two-instances-have-one-address-and-port' },
  disk_lost: { severity: 'critical', runbook: 'a-machine-is-paused-or-runs-with-a-fault', openForMs: DAY_MS },
  clock_skew: { severity: 'warning', runbook: 'the-clock-is-wrong' },
  certificate_ending: { severity: 'warning', runbook: 'a-certificate-ends-soon' },
  reload_refused: { severity: 'warning', runbook: 'a-new-catalog-was-refused' },
  disk_low: { severity: 'critical', runbook: 'the-database-does-not-answer-or-takes-no-writes' },
  backup_failed: { severity: 'critical', runbook: 'a-scheduled-backup-failed' },
  alarm_route_failing: { severity: 'warning', runbook: 'people-are-not-told-of-alarms' },
  store_unwritable: { severity: 'critical', runbook: 'the-database-does-not-answer-or-takes-no-writes' },
} as const satisfies AlarmKinds;
export type AlarmKind = keyof typeof alarmKindFacts;
export const alarmKinds = Object.keys(alarmKindFacts) as [AlarmKind, ...AlarmKind[]];
