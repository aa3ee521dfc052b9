import { Command, Option } from 'commander';
import { usdFromMicroUsd } from '../../contract/values.ts';
import {
  activeStatuses,
  type DeploymentStatus,
  deploymentStatuses,
} from '../../marketplace/contract/deployment.ts';
import { toDollars } from '../../marketplace/contract/values.ts';
import { costsOf } from '../../marketplace/ledger/balance.ts';
import { type DeploymentRecord, isLost } from '../../marketplace/model/deployment-record.ts';
import { findTeam } from '../../marketplace/model/own-rows.ts';
import { Fatal } from '../../ports/errors.ts';
import { printLine } from '../../runtime/print.ts';
import {
  type Column,
  cutName,
  isData,
  type ListFlags,
  type OutputFlag,
  printData,
  printRecords,
  toFields,
  toJsonTime,
  toReadLimit,
  withList,
  withOutput,
} from '../print-records.ts';
import { type CommandDeps, onMarketplaceDatabase } from './database.ts';

type StatusChoice = 'active' | 'all' | DeploymentStatus;

interface DeploymentFlags extends ListFlags {
  team?: string;
  provider?: string;
  status: StatusChoice;
  limit: number;
}

/** `berth marketplace deployments`: the deployments of every team, read-only. */
export function deploymentsCommand(): Command {
  const deployments = new Command('deployments');
  withList(onMarketplaceDatabase(deployments.command('ls'), printDeployments), 100)
    .description('list deployments, the newest first')
    .option('--team <team>', 'of this team, by its id or slug')
    .option('--provider <id>', 'at this provider')
    .addOption(
      new Option('--status <status>', 'those that are active, all, or those with one status')
        .choices(['active', 'all', ...deploymentStatuses])
        .default('active'),
    );
  withOutput(onMarketplaceDatabase(deployments.command('show <id>'), printDeployment)).description(
    'show all details of a deployment',
  );
  return deployments;
}

const columns: readonly Column<DeploymentRecord>[] = [
  { head: 'ID', key: 'id', value: ({ id }) => id },
  { head: 'NAME', key: 'name', value: ({ name }) => name, text: ({ name }) => cutName(name) },
  { head: 'STATUS', key: 'status', value: ({ status }) => status },
  { head: 'PROVIDER', key: 'provider', value: ({ providerId }) => providerId },
  { head: 'THERE', key: 'provider_instance_id', value: ({ providerInstanceId }) => providerInstanceId },
  { head: 'OFFER', key: 'offer', value: ({ offerId }) => offerId },
  { head: 'TEAM', key: 'team_id', value: ({ teamId }) => teamId },
  {
    head: 'AN HOUR',
    key: 'usd_per_hour',
    value: ({ rateMicroUsd }) => usdFromMicroUsd(rateMicroUsd),
    text: ({ rateMicroUsd }) => toDollars(rateMicroUsd),
  },
  { head: 'CREATED', key: 'created_at', value: ({ createdAt }) => toJsonTime(createdAt) },
  { head: 'CONFIRMED', key: 'confirmed_at', value: ({ observedAt }) => toJsonTime(observedAt) },
];

async function printDeployments({ store: { read } }: CommandDeps, flags: DeploymentFlags): Promise<void> {
  const { team, provider, status } = flags;
  const statuses = toStatuses(status);
  const found = await read.deployments.list({
    ...(team !== undefined && { teamIds: [(await findTeam(read.teams, team)).id] }),
    ...(provider !== undefined && { providerId: provider }),
    ...(statuses !== undefined && { statuses }),
    page: { limit: toReadLimit(flags), offset: 0 },
  });
  printRecords(found, columns, flags, 'There is no such deployment.');
}

function toStatuses(status: StatusChoice): readonly DeploymentStatus[] | undefined {
  if (status === 'all') return undefined;
  return status === 'active' ? activeStatuses : [status];
}

/** The marketplace's contract limits a name only by the size of a request. */
const LONGEST_NAME = 255;

/** The list's columns, and further details. */
const facts: readonly Column<DeploymentRecord>[] = [
  ...columns.map((column) =>
    column.key === 'name'
      ? { ...column, text: ({ name }: DeploymentRecord) => cutName(name, LONGEST_NAME) }
      : column,
  ),
  { head: 'Name at the provider', key: 'provider_name', value: ({ providerName }) => providerName },
  { head: 'Region', key: 'region', value: ({ region }) => region },
  { head: 'User', key: 'user_id', value: ({ userId }) => userId },
  { head: 'Launch', key: 'launch', value: ({ launch }) => launch.state },
  { head: 'Request id', key: 'request_id', value: ({ launch }) => launch.requestId ?? null },
  {
    head: 'Endpoint',
    key: 'endpoint',
    value: ({ loginUser, ipAddress, sshPort }) =>
      ipAddress === null ? null : `${loginUser}@${ipAddress}:${sshPort}`,
  },
  { head: 'Failure', key: 'failure_reason', value: ({ failureReason }) => failureReason },
  { head: 'Failure details', key: 'failure_details', value: ({ failureDetails }) => failureDetails },
  {
    head: 'Change in progress',
    key: 'action',
    value: ({ action }) => (action === null ? null : `${action.kind} since ${toJsonTime(action.since)}`),
  },
  {
    head: 'To be confirmed',
    key: 'suspicion',
    value: ({ suspicion }) =>
      suspicion === null
        ? null
        : `${suspicion.status} since ${toJsonTime(suspicion.since)}, in ${suspicion.polls} polls${suspicion.isListed ? ' and the list' : ''}`,
  },
  {
    head: 'SSH proof',
    key: 'ssh',
    value: ({ sshProof }) => {
      if (sshProof === null) return null;
      if (sshProof.provedAt !== null) return `proved ${toJsonTime(sshProof.provedAt)}`;
      return `${sshProof.attempts} attempts failed, the last at ${sshProof.failedAt ?? 'none'}`;
    },
  },
  { head: 'Clean-up at the provider', key: 'cleanup', value: ({ cleanup }) => cleanup },
  {
    head: 'Lost',
    key: 'lost',
    value: isLost,
    text: (record) =>
      isLost(record)
        ? `yes: its instance is kept if it turns up again; to delete it: berth marketplace losses clean-up ${record.id}`
        : 'no',
  },
  { head: 'Started', key: 'started_at', value: ({ startedAt }) => toJsonTime(startedAt) },
  { head: 'Stopped', key: 'paused_at', value: ({ pausedAt }) => toJsonTime(pausedAt) },
  { head: 'Ended', key: 'ended_at', value: ({ stoppedAt }) => toJsonTime(stoppedAt) },
];

async function printDeployment(
  { store: { read }, clock }: CommandDeps,
  id: string,
  flags: OutputFlag,
): Promise<void> {
  const record = await read.deployments.byId(id);
  if (record === null)
    throw new Fatal(
      `There is no deployment "${id}": \`berth marketplace deployments ls --status all\` lists them.`,
    );
  const cost = (await costsOf(read, [record], clock.now()))(record);
  if (isData(flags)) return printData(flags, { ...toFields(record, facts), cost_usd: usdFromMicroUsd(cost) });
  for (const { head, value, text } of facts) {
    const known = value(record);
    if (known !== null) printLine(`${head.toLowerCase().padEnd(26)}${text?.(record) ?? known}`);
  }
  printLine(`${'cost'.padEnd(26)}${toDollars(cost)}; rate by rate: berth marketplace explain-bill ${id}`);
}
