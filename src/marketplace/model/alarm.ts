import type { AlarmKinds } from '../../operator-kit/alarms/model.ts';

/**
 * The kinds of alarms. An alarm is open until its cause is gone. The subject of each kind:
 * - a provider: `provider_silent`, `provider_calls_failing`, `losses_held`, `volume_size_differs`, `machines_not_reached`
 * - `ledger`: `ledger_wrong`, `billing_late`; `mail`: `mail_overdue`, `mail_given_up`
 * - a server, or PROVIDER: `certificate_ending`; a server: `disk_low`, `backup_failed`; a route: `alarm_route_failing`
 */
export const alarmKindFacts = {
  provider_silent: { severity: 'critical', runbook: 'a-provider-of-the-marketplace-does-not-answer' },
  provider_calls_failing: { severity: 'critical', runbook: 'calls-about-instances-of-a-provider-fail' },
  losses_held: { severity: 'critical', runbook: 'instances-are-held-beyond-the-cap-on-losses' },
  volume_size_differs: { severity: 'warning', runbook: 'a-provider-shows-another-size-of-a-volume' },
  machines_not_reached: { severity: 'warning', runbook: 'machines-are-online-and-cannot-be-logged-in-to' },
  ledger_wrong: { severity: 'critical', runbook: 'the-books-are-not-right' },
  billing_late: { severity: 'critical', runbook: 'the-books-are-not-right' },
  mail_overdue: { severity: 'warning', runbook: 'mails-are-not-sent' },
  mail_given_up: { severity: 'warning', runbook: 'mails-are-not-sent' },
  certificate_ending: { severity: 'warning', runbook: 'a-certificate-ends-soon' },
  disk_low: { severity: 'critical', runbook: 'the-database-does-not-answer-or-takes-no-writes' },
  backup_failed: { severity: 'critical', runbook: 'a-scheduled-backup-failed' },
  alarm_route_failing: { severity: 'warning', runbook: 'people-are-not-told-of-alarms' },
} as const satisfies AlarmKinds;
export type AlarmKind = keyof typeof alarmKindFacts;
export const alarmKinds = Object.keys(alarmKindFacts) as [AlarmKind, ...AlarmKind[]];
