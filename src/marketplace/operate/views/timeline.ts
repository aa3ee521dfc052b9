import { type TimelineEntry, timelineView } from '../../../operator-kit/alarms/timeline.ts';
import { alarmKindFacts } from '../../model/alarm.ts';
import type { DeploymentRecord } from '../../model/deployment-record.ts';
import type { MailRecord } from '../../model/ledger-records.ts';
import type { ViewDeps } from './pages.ts';

/** `berth marketplace timeline`. */
export const timeline = timelineView<ViewDeps>({
  kinds: alarmKindFacts,
  words: { instance: 'deployment', provider: 'provider', account: 'team' },
  resources: ({ store: { read } }, { instance, provider: providerId, account }) => [
    async ({ from, to, limit }) => {
      const after = { at: to + 1, id: '' };
      const wanted = { after, limit, providerId, ...(account !== undefined && { teamIds: [account] }) };
      const found =
        instance === undefined
          ? await read.deployments.list(wanted)
          : [await read.deployments.byId(instance)].filter((one) => one !== null);
      return found
        .filter(
          (one) =>
            one.createdAt >= from &&
            one.createdAt <= to &&
            (providerId === undefined || one.providerId === providerId) &&
            (account === undefined || one.teamId === account),
        )
        .map(toEntry);
    },
    // A mail is to a user, and names no resource.
    async ({ from, to, limit }) => {
      if (instance !== undefined || providerId !== undefined || account !== undefined) return [];
      const found = await read.mail.list({ after: { at: to + 1, id: '' }, limit });
      return found.filter(({ createdAt }) => createdAt >= from).map(toMailEntry);
    },
  ],
  placesOf: async ({ store: { read } }, subjects) => {
    const ids = subjects.filter((one) => one.startsWith('dep-'));
    const found = await Promise.all(ids.map((id) => read.deployments.byId(id)));
    return new Map(
      found.flatMap((one) => (one === null ? [] : [[one.id, [one.providerId, one.teamId]] as const])),
    );
  },
});

function toEntry(record: DeploymentRecord): TimelineEntry {
  const { id, createdAt, userId, offerId, providerId, region, status, failureReason } = record;
  const reason = failureReason === null ? '' : ` (${failureReason})`;
  return {
    ...{ at: createdAt, source: 'resource', event: 'deployment created', subject: id, by: userId, about: [] },
    text: `${offerId} of ${providerId} in ${region}; now ${status}${reason}`,
  };
}

function toMailEntry({ createdAt, kind, to, subject }: MailRecord): TimelineEntry {
  return {
    at: createdAt,
    source: 'server',
    event: `mail ${kind}`,
    subject: to,
    by: null,
    text: subject,
    about: [],
  };
}
