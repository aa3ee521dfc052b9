import { z } from 'zod';
import { timestampSchema, toDollars, usdFromMicroUsd, usdToDollars } from '../../contract/values.ts';
import { type CommandSpec, defineAction, type Flag } from '../../operator-kit/operation.ts';
import { toTime } from '../../operator-kit/views/values.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import { realTimeBalance } from '../ledger/balance.ts';
import { book } from '../ledger/credit.ts';
import { type DeploymentRecord, isActive, isLost, type LostDeployment } from '../model/deployment-record.ts';
import type { MailRecord } from '../model/ledger-records.ts';
import { findTeam, OperatorError } from '../model/own-rows.ts';
import type { Store } from '../model/store.ts';
import { acceptLosses } from '../providers/loss-cap.ts';
import { type MailRow, mailRowSchema, toMailRow } from './views/mails.ts';
import type { ProviderRow } from './views/providers.ts';

interface Deps {
  store: Store;
  clock: Clock;
  random: Random;
}

interface CleanUpDeps extends Deps {
  /** Those of the configuration that are not retired. */
  providers: () => { has(id: string): boolean };
}

const bookingSchema = z.object({
  id: z.string(),
  team_id: z.string(),
  memo: z.string(),
  balance_usd: z.number().meta({ description: 'What the team has left to spend.' }),
});
type Booking = z.output<typeof bookingSchema>;

/** Books a credit. A repeated booking does not add a second row to the audit log. */
export const bookCredit = defineAction({
  name: 'bookCredit',
  tag: 'Actions',
  path: '/teams/{team}/credit',
  summary: 'Book a payment, a grant or a correction',
  description: 'Idempotent: a repeated request with the same reference books nothing more.',
  input: {
    team: z.string().meta({ description: 'The slug or the id of a team.' }),
    kind: z.enum(['top_up', 'grant', 'adjustment']),
    amount_usd: z
      .number()
      .min(-1e9)
      .max(1e9)
      .multipleOf(0.000001)
      .meta({ description: 'Below zero only for an adjustment.' }),
    reference: z.string().min(1).max(200).meta({
      description: 'Reference of the payment or order. A reference is booked only once.',
    }),
    reason: z.string().min(1).max(500).optional(),
  },
  check: {
    isValid: ({ kind, reason }) => kind !== 'adjustment' || reason !== undefined,
    path: ['reason'],
    error: 'expected a reason; it is kept in the books',
  },
  example: {
    kind: 'grant',
    amount_usd: 25,
    reference: 'outage-of-monday',
    reason: 'for the outage of Monday',
  },
  status: 201,
  errors: ['not_found'],
  reply: ['The booking.', bookingSchema],
  audit: async (
    { team, kind, amount_usd: usd, reference = null, reason = null },
    { store: { read } }: Deps,
  ) => ({
    action: `credit.${kind}`,
    subject: (await findTeam(read.teams, team).catch(() => null))?.id ?? team,
    detail: { amount: toDollars(toMicroUsd(usd)), reference, reason },
  }),
  form: {
    title: ({ kind, team }) => `${kind} for ${team}`,
    button: 'Book it',
    page: () => '/console/books',
    beside: 'readBooks',
    preview: (_reply, _deps, { team, kind, amount_usd: usd, reference }) => [
      `${usdToDollars(usd)} are booked to ${team} as ${kind}, with the reference ${reference}; it is kept in the books for good.`,
    ],
  },
  run: async (deps: Deps, { team, kind, amount_usd: usd, ...of }, _actor, skipAudit) => {
    const { id: teamId } = await deps.store.transact((tx) => findTeam(tx.teams, team));
    const { record, isReplay } = await book(deps, kind, { teamId, amountMicroUsd: toMicroUsd(usd), ...of });
    if (isReplay) skipAudit();
    const balance = await deps.store.transact((tx) => realTimeBalance(tx, teamId, deps.clock.now()));
    return { id: record.id, team_id: teamId, memo: record.memo, balance_usd: usdFromMicroUsd(balance) };
  },
  commands: [
    credit('top-up', 'top_up', 'record a payment; the same reference is recorded once', {
      reference: ['--reference <text>', 'of the payment', { isRequired: true }],
      reason: ['--reason <text>', 'what it is for'],
    }),
    credit('grant', 'grant', 'grant unpaid credit', {
      reference: ['--reference <text>', 'the same reference is recorded once'],
      reason: ['--reason <text>', 'what it is for'],
    }),
    credit('adjust', 'adjustment', 'correct a balance: `-- -5` subtracts five dollars', {
      reason: ['--reason <text>', 'why; kept in the ledger', { isRequired: true }],
      reference: ['--reference <text>', 'the same reference is recorded once'],
    }),
  ],
});

const toMicroUsd = (usd: number): number => Math.round(usd * 1_000_000);

function credit(
  verb: string,
  kind: string,
  description: string,
  flags: Readonly<Record<string, Flag>>,
): CommandSpec<unknown, Booking> {
  return {
    name: `credit ${verb}`,
    description,
    args: { team: ['<team>'], amount_usd: ['<usd>'] },
    flags,
    fixed: { kind },
    toText: ({ id, memo, team_id: team, balance_usd: usd }) => [
      `${memo} (${id}): ${team} has ${usdToDollars(usd)} left to spend.`,
    ],
  };
}

const USUAL_S = 3600;
const LONGEST_S = 24 * 3600;

/** Accepts all losses of the provider for a time. */
export const acceptProviderLosses = defineAction({
  name: 'acceptLosses',
  tag: 'Actions',
  path: '/providers/{provider}/losses/accept',
  summary: 'Accept the losses of a provider',
  description:
    'For `for_s` seconds, deployments and volumes that the provider answers 404 for end, without the limit on losses.',
  input: {
    provider: z.string(),
    for_s: z.int().min(60).max(LONGEST_S).default(USUAL_S).meta({ description: 'Duration in seconds.' }),
  },
  example: { for_s: USUAL_S },
  errors: [],
  reply: ['When the acceptance ends.', z.object({ provider: z.string(), accepted_until: timestampSchema })],
  audit: ({ provider }) => ({
    action: 'losses.accept',
    subject: provider,
    done: ({ accepted_until: until }) => ({ detail: { until } }),
  }),
  run: async ({ store, clock }: Deps, { provider, for_s: seconds }) => {
    if (!(await store.read.losses.providers()).includes(provider))
      throw new OperatorError(
        `No losses are recorded for provider "${provider}": see \`berth marketplace losses\`.`,
      );
    const until = clock.now() + seconds * 1000;
    await acceptLosses({ store }, provider, until);
    return { provider, accepted_until: toTime(until) };
  },
  commands: [
    {
      name: 'losses accept',
      description: 'accept the losses: during the time of --for, what the provider answers 404 for is ended',
      args: { provider: ['<provider>'] },
      flags: {
        for_s: [
          '--for <time>',
          'how long: minutes or hours, such as 30m or 2h',
          { default: USUAL_S, shownDefault: '"1h"' },
        ],
      },
      toText: ({ provider, accepted_until: until }) => [
        `Until ${until} a running server ends, within a minute, what ${provider} answers 404 for. It stays ended, ` +
          `even if it turns up again. To stop accepting earlier: berth marketplace losses accept ${provider} --for 1m`,
      ],
    },
  ],
  form: {
    title: ({ provider }) => `Accept the losses of ${provider}`,
    button: 'The instances are gone: accept',
    isDangerous: true,
    inRows: {
      of: 'listProviders',
      fields: ({ provider, losses_held: held }: ProviderRow) => (held === 0 ? undefined : { provider }),
    },
    page: () => '/console/providers',
    preview: () => [
      'First check that its key and base_url belong to our account.',
      'Then, for an hour, what it answers 404 for ends within a minute, and stays ended even if it turns up again.',
    ],
  },
});

/** A server deletes the instance at once. If it appears only later, the sweep deletes it. */
export const cleanUpLost = defineAction({
  name: 'cleanUpLost',
  tag: 'Actions',
  path: '/deployments/{deploymentId}/clean-up',
  summary: 'Delete the instance of a lost deployment',
  description:
    'A deployment is lost if it ended because its provider answered 404 for its instance. The instance is kept until ' +
    'this orders its deletion; then it is deleted within seconds, or once its provider lists it again.',
  input: { deploymentId: z.string() },
  errors: ['not_found', 'payload_too_large', 'request_timeout'],
  reply: [
    'The deployment and its instance.',
    z.object({ id: z.string(), provider: z.string(), provider_instance_id: z.string(), cleanup: z.string() }),
  ],
  audit: ({ deploymentId }) => ({ action: 'losses.clean_up', subject: deploymentId }),
  run: ({ store, providers }: CleanUpDeps, { deploymentId: id }) =>
    store.transact(async (tx) => {
      const record = await tx.deployments.byId(id);
      if (record === null)
        throw new OperatorError(
          `There is no deployment "${id}": see \`berth marketplace deployments ls\`.`,
          'not_found',
        );
      if (!isLost(record)) throw new OperatorError(whyNotLost(record));
      if (!providers().has(record.providerId))
        throw new OperatorError(
          `Nothing is sent to ${record.providerId}, which is retired or not in the configuration: delete the instance ${record.providerInstanceId} there yourself.`,
        );
      const wanted: LostDeployment = { ...record, cleanup: 'wanted' };
      await tx.deployments.update(wanted);
      await tx.signals.wake(record.providerId, id);
      const { providerId: provider, providerInstanceId, cleanup } = wanted;
      return { id, provider, provider_instance_id: providerInstanceId, cleanup };
    }),
  commands: [
    {
      name: 'losses clean-up',
      description: 'delete the instance of a deployment that ended because its provider answered 404 for it',
      args: { deploymentId: ['<deployment>'] },
      toText: ({ id, provider, provider_instance_id: instance }) => [
        `A running server deletes the instance ${instance} of ${id} at ${provider} with its data within ` +
          `seconds; if it turns up only later, the sweep deletes it. To see when the clean-up is done: berth marketplace deployments show ${id}`,
      ],
    },
  ],
  form: {
    title: () => 'Delete the instance of a lost deployment',
    button: 'Delete the instance',
    page: ({ deploymentId }) => `/console/deployments/${encodeURIComponent(deploymentId)}`,
  },
});

function whyNotLost(record: DeploymentRecord): string {
  const { id, status, cleanup } = record;
  if (isActive(record)) return `The deployment "${id}" is ${status}: it has not ended.`;
  if (cleanup === 'wanted') return `The instance of the deployment "${id}" is already being deleted.`;
  if (cleanup === 'done') return `The instance of the deployment "${id}" is already deleted.`;
  return `The deployment "${id}" never had an instance.`;
}

/** Retries a waiting or given-up mail now. A given-up mail gets three more days. */
export const resendMail = defineAction({
  name: 'resendMail',
  tag: 'Actions',
  path: '/mails/{mailId}/resend',
  summary: 'Try a waiting or given-up mail now',
  description: 'A mail that was sent is refused.',
  input: { mailId: z.string() },
  errors: ['not_found', 'payload_too_large', 'request_timeout'],
  reply: ['The mail.', mailRowSchema],
  audit: ({ mailId }) => ({ action: 'mail.resend', subject: mailId }),
  run: ({ store, clock }: Deps, { mailId: id }) =>
    store.transact(async (tx) => {
      const record = await tx.mail.byId(id);
      if (record === null)
        throw new OperatorError(`There is no mail "${id}": see \`berth marketplace mail ls\`.`, 'not_found');
      if (record.sentAt !== null)
        throw new OperatorError(`The mail "${id}" was already sent: it is not sent twice.`);
      const now = clock.now();
      const createdAt = record.failedAt === null ? record.createdAt : now;
      const due: MailRecord = { ...record, createdAt, dueAt: now, failedAt: null };
      await tx.mail.update(due);
      return toMailRow(due);
    }),
  commands: [
    {
      name: 'mail resend',
      description: 'try a waiting or given-up mail now',
      args: { mailId: ['<id>'] },
      toText: ({ id, to }) => [`A running server retries the mail ${id} to ${to} within seconds.`],
    },
  ],
  form: {
    title: () => 'Try a mail now',
    button: 'Try now',
    inRows: {
      of: 'listMails',
      fields: ({ id, state }: MailRow) => (state === 'sent' ? undefined : { mailId: id }),
    },
    page: () => '/console/mails?state=waiting',
  },
});
