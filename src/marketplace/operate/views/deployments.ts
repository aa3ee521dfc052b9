import { z } from 'zod';
import { timestampSchema, usdFromMicroUsd } from '../../../contract/values.ts';
import { linkOfId, type Tone } from '../../../operator-kit/columns.ts';
import { defineView } from '../../../operator-kit/operation.ts';
import {
  cutPage,
  limitSchema,
  nextSchema,
  timeOrNullSchema,
  toTime,
  USUAL_PAGE,
} from '../../../operator-kit/views/values.ts';
import { activeStatuses, type DeploymentStatus, deploymentStatuses } from '../../contract/deployment.ts';
import { costsOf } from '../../ledger/balance.ts';
import { type DeploymentRecord, isLost } from '../../model/deployment-record.ts';
import type { Intent } from '../../model/intent.ts';
import { findTeam } from '../../model/own-rows.ts';
import type { Reader } from '../../model/store.ts';
import { afterSchema, fromPageEnd, known, textSchema, toPageEnd, type ViewDeps } from './pages.ts';

/** A deployment in a list. */
const deploymentRowSchema = z
  .object({
    id: z.string(),
    status: z.enum(deploymentStatuses),
    name: z.string(),
    provider: z.string(),
    provider_instance_id: z.string().nullable(),
    offer: z.string(),
    region: z.string(),
    team_id: z.string(),
    usd_per_hour: z.number(),
    created_at: timestampSchema,
    confirmed_at: timeOrNullSchema,
    failure_reason: z.string().nullable(),
  })
  .meta({ id: 'DeploymentRow' });
export type DeploymentRow = z.infer<typeof deploymentRowSchema>;

const deploymentPageSchema = z
  .object({ deployments: z.array(deploymentRowSchema), next: nextSchema })
  .meta({ id: 'DeploymentPage' });
const text = z.string().nullable();

/** The details of a deployment. */
const deploymentDetailSchema = deploymentRowSchema
  .extend({
    provider_name: z.string().meta({ description: 'Name of the instance at the provider.' }),
    user_id: z.string(),
    gpu: z.string(),
    instance_type: z.string(),
    launch: z.string(),
    request_id: text,
    endpoint: text,
    failure_details: text,
    action: text.meta({ description: 'Change in progress, and whether the provider accepted it.' }),
    last_refusal: text.meta({
      description:
        'Why the last stop, start or restart that did not reach its provider, or that it refused, was given up.',
    }),
    suspicion: text.meta({ description: 'State shown by the provider and not confirmed yet.' }),
    ssh: text,
    cleanup: z.string(),
    lost: z.boolean().meta({
      description:
        'The provider answered 404 for the instance, or is retired: it is kept until an operator cleans it up.',
    }),
    started_at: timeOrNullSchema,
    paused_at: timeOrNullSchema,
    ended_at: timeOrNullSchema,
    cost_usd: z.number(),
  })
  .meta({ id: 'DeploymentDetail' });
export type DeploymentDetail = z.infer<typeof deploymentDetailSchema>;

/** The status filter of the list: a status, `active` or `all`. */
const statusFilterSchema = z.enum(['active', 'all', ...deploymentStatuses]);

function toStatuses(status: z.infer<typeof statusFilterSchema>): readonly DeploymentStatus[] | undefined {
  if (status === 'all') return undefined;
  return status === 'active' ? activeStatuses : [status];
}

function toDeploymentRow(record: DeploymentRecord): DeploymentRow {
  return {
    id: record.id,
    name: record.name,
    status: record.status,
    provider: record.providerId,
    provider_instance_id: record.providerInstanceId,
    offer: record.offerId,
    region: record.region,
    team_id: record.teamId,
    usd_per_hour: usdFromMicroUsd(record.rateMicroUsd),
    created_at: toTime(record.createdAt),
    confirmed_at: toTime(record.observedAt),
    failure_reason: record.failureReason,
  };
}

/** The details of a deployment; null: not found. */
export async function readDeployment(
  read: Pick<Reader, 'deployments' | 'volumes' | 'ledger' | 'discounts'>,
  id: string,
  now: number,
): Promise<DeploymentDetail | null> {
  const record = await read.deployments.byId(id);
  if (record === null) return null;
  const costOf = await costsOf(read, [record], now);
  const attachments = await read.volumes.attachmentsOf({ deploymentId: id });
  const changes = [record.action, ...attachments.map(({ intent }) => intent)];
  const { loginUser, ipAddress, sshPort, gpuCount, gpuModel } = record;
  return {
    ...toDeploymentRow(record),
    provider_name: record.providerName,
    user_id: record.userId,
    gpu: gpuCount === 0 ? 'none' : `${gpuCount} × ${gpuModel}`,
    instance_type: record.instanceType,
    launch: record.launch.state,
    request_id: record.launch.requestId ?? null,
    endpoint: ipAddress === null ? null : `${loginUser}@${ipAddress}:${sshPort}`,
    failure_details: record.failureDetails,
    action: describeAction(changes.find((intent) => intent !== null)),
    last_refusal: record.refusal?.message ?? null,
    suspicion: describeSuspicion(record),
    ssh: describeProof(record),
    cleanup: record.cleanup,
    lost: isLost(record),
    started_at: toTime(record.startedAt),
    paused_at: toTime(record.pausedAt),
    ended_at: toTime(record.stoppedAt),
    cost_usd: usdFromMicroUsd(costOf(record)),
  };
}

function describeAction(action: Intent | null | undefined): string | null {
  if (!action) return null;
  const accepted = action.answer === 'accepted' ? ', accepted by the provider' : '';
  return `${action.kind} since ${toTime(action.since)}${accepted}`;
}

function describeSuspicion({ suspicion }: DeploymentRecord): string | null {
  if (suspicion === null) return null;
  const { status, since, polls } = suspicion;
  return `${status} since ${toTime(since)}, in ${polls} polls`;
}

function describeProof({ sshProof }: DeploymentRecord): string | null {
  if (sshProof === null) return null;
  const { provedAt, attempts, failedAt } = sshProof;
  if (provedAt !== null) return `proved ${toTime(provedAt)}`;
  return `${attempts} attempts failed, the last at ${failedAt ?? 'none'}`;
}

const TONES: Readonly<Record<DeploymentStatus, Tone>> = {
  deploying: 'busy',
  running: 'good',
  stopped: 'none',
  failed: 'bad',
  terminated: 'none',
  'terminated-provider': 'wait',
};

export function toneOf({ status }: { status: DeploymentStatus }): Tone {
  return TONES[status];
}

export const deploymentsView = defineView({
  name: 'findDeployments',
  tag: 'Views',
  path: '/deployments',
  summary: 'Deployments of all teams, page by page',
  description:
    'Newest first. `q` searches id, name, the names at the provider, address and failure. Without `q` and a status: deployments that have not ended.',
  input: {
    team: z.string().optional().meta({ description: 'The slug or the id of a team.' }),
    provider: z.string().optional(),
    status: statusFilterSchema.optional(),
    q: textSchema,
    after: afterSchema,
    limit: limitSchema,
  },
  errors: ['not_found'],
  reply: ['A page of them.', deploymentPageSchema],
  commands: [
    {
      name: 'deployments ls',
      description: 'list deployments, the newest first',
      flags: {
        team: ['--team <team>', 'of this team, by its id or slug'],
        provider: ['--provider <id>', 'at this provider'],
        status: [
          '--status <status>',
          'those that are active, all, or those with one status',
          { default: 'active' },
        ],
      },
      list: { limit: 100 },
    },
  ],
  list: {
    rows: 'deployments',
    title: 'Deployments',
    about: 'of all teams, the newest first',
    none: 'There is no such deployment.',
    columns: [
      { field: 'id', page: ({ id }) => linkOfId(id) },
      'name',
      { field: 'failure_reason', under: 'id', isWide: true },
      { field: 'status', tone: toneOf },
      'offer',
      { field: 'region', under: 'offer', isWide: true },
      'provider',
      { field: 'provider_instance_id', isWide: true },
      { field: 'team_id', title: 'team', page: ({ team_id: team }) => linkOfId(team) },
      'usd_per_hour',
      'created_at',
      { field: 'confirmed_at', isWide: true },
    ],
  },
  read: async (
    { store: { read } }: ViewDeps,
    { team, q: text, status = text === undefined ? 'active' : 'all', after, limit = USUAL_PAGE, ...of },
  ) => {
    const found = await read.deployments.list({
      text,
      providerId: of.provider,
      teamIds: team === undefined ? undefined : [(await findTeam(read.teams, team)).id],
      statuses: toStatuses(status),
      after: toPageEnd(after),
      limit: limit + 1,
    });
    const { rows, next } = cutPage(found, limit, ({ createdAt: at, id }) => fromPageEnd({ at, id }));
    return { deployments: rows.map(toDeploymentRow), next };
  },
});

const KEPT = 'its instance is kept if it turns up again; to delete it: berth marketplace losses clean-up';

export const deploymentView = defineView({
  name: 'showDeployment',
  tag: 'Views',
  path: '/deployments/{deploymentId}',
  summary: 'One deployment with all its details',
  description: 'Ended deployments are included.',
  input: { deploymentId: z.string() },
  errors: ['not_found'],
  reply: ['The deployment.', deploymentDetailSchema],
  commands: [
    {
      name: 'deployments show',
      description: 'show all details of a deployment',
      args: { deploymentId: ['<id>'] },
      toText: (found) => [
        { ...found, lost: found.lost ? `yes: ${KEPT} ${found.id}` : 'no' },
        `Its cost, rate by rate: berth marketplace explain-bill ${found.id}`,
      ],
    },
  ],
  read: async ({ store, clock }: ViewDeps, { deploymentId }) =>
    known(
      await readDeployment(store.read, deploymentId, clock.now()),
      `deployment "${deploymentId}": see \`berth marketplace deployments ls --status all\``,
    ),
});
