import { z } from 'zod';
import type { Actor } from '../../operator-kit/model.ts';
import { defineAction } from '../../operator-kit/operation.ts';
import { ApiError } from '../contract/errors.ts';
import { writeIntent } from '../deployments/intents.ts';
import { assertCanOrder, orderEnd } from '../deployments/orders.ts';
import type { Deps } from '../deps.ts';
import { orderedMessage } from '../mail/messages.ts';
import { queueMail } from '../mail/outbox.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { OperatorError } from '../model/own-rows.ts';
import type { Reader, Transaction } from '../model/store.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import type { Providers } from '../providers/provider.ts';
import { assertDeletable, isDeleted, orderDeletion } from '../volumes/delete.ts';
import { readVolumeSnapshot } from '../volumes/snapshot.ts';
import { reasonField, requireReason, WHO_READS_IT } from './suspensions.ts';

/** What orders about deployments and volumes need. */
export interface OrderDeps extends Pick<Deps, 'store' | 'clock' | 'random' | 'log' | 'options'> {
  /** The providers and their catalogs. */
  sellers: Providers;
}

const planSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    team_id: z.string(),
    owner: z.string().meta({ description: 'The e-mail address of the user who made it.' }),
    status: z.string(),
    effect: z.string().meta({ description: 'The effect, in a sentence.' }),
    done: z.boolean().meta({ description: 'False: a dry run; nothing has changed.' }),
  })
  .meta({ id: 'OrderPlan' });
type OrderPlan = z.output<typeof planSchema>;

async function toPlan(
  { users }: Pick<Reader, 'users'>,
  { name, teamId, userId, status, ...record }: DeploymentRecord | VolumeRecord,
  effect: string,
  done: boolean,
): Promise<OrderPlan> {
  const owner = (await users.byId(userId))?.email ?? userId;
  const id = 'volumeId' in record ? record.volumeId : record.id;
  return { id, name, team_id: teamId, owner, status, effect, done };
}

function toText({ id, owner, team_id: team, status, effect, done }: OrderPlan): string[] {
  return [
    `${id} of ${owner} (${team}) was ${status}.`,
    done ? `Ordered: ${effect}.` : `A dry run; with --yes, ${effect}.`,
  ];
}

/** Tells the operator what a user would be told. */
async function asOperator<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof ApiError ? new OperatorError(error.message) : error;
  }
}

async function mailOwner(
  deps: OrderDeps,
  tx: Transaction,
  { id, name, userId }: DeploymentRecord | VolumeRecord,
  what: string,
  reason: string,
): Promise<void> {
  const user = await tx.users.byId(userId);
  const dedupeKey = `ordered:${what}:${id}:${deps.clock.now()}`;
  const news = {
    class: 'billing',
    kind: 'ordered',
    dedupeKey,
    ...orderedMessage(what, { id, name, reason }),
  } as const;
  if (user !== null) await queueMail(deps, tx, user, news);
}

interface DeploymentOrder<Verb extends string> {
  verb: Verb;
  summary: string;
  description: string;
  /** As the mail's subject says it. */
  what: string;
  effect: string;
  isDangerous: boolean;
  /** @throws {ApiError | OperatorError} */
  assertPossible: (
    deps: OrderDeps,
    read: Pick<Reader, 'volumes'>,
    record: DeploymentRecord,
  ) => void | Promise<void>;
  order: (deps: OrderDeps, tx: Transaction, record: DeploymentRecord, by: Actor) => Promise<unknown>;
}

function deploymentOrder<Verb extends string>(order: DeploymentOrder<Verb>) {
  const { verb, summary, description, what, effect, isDangerous } = order;
  const find = async (deps: OrderDeps, read: Pick<Reader, 'deployments' | 'volumes'>, id: string) => {
    const record = await read.deployments.byId(id);
    if (record === null)
      throw new OperatorError(
        `There is no deployment "${id}": see \`berth marketplace deployments ls\`.`,
        'not_found',
      );
    await asOperator(async () => order.assertPossible(deps, read, record));
    return record;
  };
  return defineAction({
    name: `${verb}Deployment` as const,
    tag: 'Actions',
    path: `/deployments/{deploymentId}/${verb}`,
    summary,
    description,
    input: { deploymentId: z.string(), reason: reasonField },
    example: { reason: 'it attacks other networks' },
    errors: ['not_found'],
    reply: ['The effect.', planSchema],
    audit: ({ deploymentId: subject, reason }) => ({
      action: `deployment.${verb}`,
      subject,
      detail: { reason },
    }),
    dryRun: async (deps: OrderDeps, { deploymentId }) =>
      toPlan(deps.store.read, await find(deps, deps.store.read, deploymentId), effect, false),
    run: (deps: OrderDeps, { deploymentId, reason }, actor) =>
      deps.store.transact(async (tx) => {
        const record = await find(deps, tx, deploymentId);
        const why = requireReason(reason);
        await order.order(deps, tx, record, actor);
        await mailOwner(deps, tx, record, what, why);
        return toPlan(tx, record, effect, true);
      }),
    commands: [
      {
        name: `deployments ${verb}`,
        description: `${verb} a deployment of any team; its user is mailed the reason`,
        args: { deploymentId: ['<deployment>'] },
        flags: { reason: ['--reason <text>', 'why; the user reads it'] },
        toText,
      },
    ],
    form: {
      title: ({ deploymentId }) => `${what.replace(/ed$/, '')} ${deploymentId}`,
      button: summary,
      isDangerous,
      reason: WHO_READS_IT,
      page: ({ deploymentId }) => `/console/deployments/${encodeURIComponent(deploymentId)}`,
      preview: ({ id, owner, status }) => [`${id} of ${owner} is ${status}.`],
    },
  });
}

export const terminateDeployment = deploymentOrder({
  verb: 'terminate',
  summary: 'Terminate a deployment',
  description:
    'As its user could, without the minimum runtime. While it is deploying it is refused, as it is to its user.',
  what: 'Terminated',
  effect: 'it is terminated and no longer billed; its disk and all data on it are lost, its volumes are kept',
  isDangerous: true,
  assertPossible: (_deps, _read, { id, status }) => {
    if (status !== 'running' && status !== 'stopped')
      throw new OperatorError(`${id} is ${status}: only what is running or stopped can be terminated.`);
  },
  order: (deps, tx, record) => orderEnd({ ...deps, providers: deps.sellers }, tx, record),
});

const intentOf = (kind: 'pause' | 'restart') => ({
  assertPossible: (deps: OrderDeps, read: Pick<Reader, 'volumes'>, record: DeploymentRecord) =>
    assertCanOrder({ ...deps, providers: deps.sellers }, read, record, kind),
  order: ({ clock }: OrderDeps, tx: Transaction, record: DeploymentRecord, { name: by }: Actor) =>
    writeIntent(tx, record, { kind, by, since: clock.now(), until: null }),
});

export const stopDeployment = deploymentOrder({
  verb: 'stop',
  summary: 'Stop a deployment',
  description:
    'As its user could; they may start it again. A running server sends it within seconds; `last_refusal` of the deployment says if the provider refuses.',
  what: 'Stopped',
  effect: 'a running server stops it within seconds; its disk is kept and billed at the stopped rate',
  isDangerous: true,
  ...intentOf('pause'),
});

export const restartDeployment = deploymentOrder({
  verb: 'restart',
  summary: 'Restart a deployment',
  description:
    'A hard reboot, as its user could do it. A running server sends it within seconds; `last_refusal` of the deployment says if the provider refuses.',
  what: 'Restarted',
  effect: 'a running server restarts it within seconds; what is in memory is lost',
  isDangerous: true,
  ...intentOf('restart'),
});

const DELETION = 'it is deleted with all its data, and no longer billed once its provider accepts that';

async function findVolume(
  { store, clock, options }: OrderDeps,
  read: Pick<Reader, 'volumes'>,
  volumeId: string,
): Promise<VolumeRecord> {
  const known = await read.volumes.byVolumeId(volumeId);
  if (known === null)
    throw new OperatorError(
      `There is no volume "${volumeId}": \`berth marketplace teams show\` lists those of a team.`,
      'not_found',
    );
  if (isDeleted(known)) throw new OperatorError(`The volume "${volumeId}" is already ${known.status}.`);
  const snapshot = await readVolumeSnapshot(store.read, known.id);
  await asOperator(async () => assertDeletable(snapshot, clock.now(), options));
  return known;
}

export const deleteVolume = defineAction({
  name: 'deleteVolume',
  tag: 'Actions',
  path: '/volumes/{volumeId}/delete',
  summary: 'Delete a volume',
  description: 'As its user could: refused while it is attached to a deployment that has not ended.',
  input: { volumeId: z.string(), reason: reasonField },
  example: { reason: 'it holds malware' },
  errors: ['not_found'],
  reply: ['The effect.', planSchema],
  audit: ({ volumeId: subject, reason }) => ({ action: 'volume.delete', subject, detail: { reason } }),
  dryRun: async (deps: OrderDeps, { volumeId }) =>
    toPlan(deps.store.read, await findVolume(deps, deps.store.read, volumeId), DELETION, false),
  run: async (deps: OrderDeps, { volumeId, reason }, { name: by }) => {
    const why = requireReason(reason);
    const known = await findVolume(deps, deps.store.read, volumeId);
    await asOperator(() =>
      orderDeletion({ ...deps, providers: deps.sellers }, known, { by, until: null }, (tx) =>
        mailOwner(deps, tx, known, 'Deleted', why),
      ),
    );
    return toPlan(deps.store.read, known, DELETION, true);
  },
  commands: [
    {
      name: 'volumes rm',
      description: 'delete a volume of any team; its user is mailed the reason',
      args: { volumeId: ['<volume>'] },
      flags: { reason: ['--reason <text>', 'why; the user reads it'] },
      toText,
    },
  ],
  form: {
    title: ({ volumeId }) => `Delete ${volumeId}`,
    button: 'Delete it',
    isDangerous: true,
    reason: WHO_READS_IT,
    inRows: {
      of: 'showTeam.pays_for',
      fields: ({ id, kind }: { id: string; kind: string }) =>
        kind === 'volume' ? { volumeId: id } : undefined,
    },
    page: () => '/console/teams',
    preview: ({ id, owner, status }) => [`${id} of ${owner} is ${status}.`],
  },
});
