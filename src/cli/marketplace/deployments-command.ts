import { Command, Option } from 'commander';
import { usdToDollars } from '../../contract/values.ts';
import { findTeam } from '../../marketplace/model/own-rows.ts';
import {
  type DeploymentDetail,
  type DeploymentQuery,
  type DeploymentRow,
  listDeployments,
  readDeployment,
  statusFilterSchema,
} from '../../marketplace/operate/views/deployments.ts';
import { Fatal } from '../../ports/errors.ts';
import { printLine } from '../../runtime/print.ts';
import {
  type Column,
  cutName,
  fieldColumns,
  isData,
  type ListFlags,
  type OutputFlag,
  printData,
  printRecords,
  toFields,
  toReadLimit,
  withList,
  withNames,
  withOutput,
} from '../print-records.ts';
import { type CommandDeps, onMarketplaceDatabase } from './database.ts';

interface DeploymentFlags extends ListFlags {
  team?: string;
  provider?: string;
  status: DeploymentQuery['status'];
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
        .choices(statusFilterSchema.options)
        .default('active'),
    );
  withOutput(onMarketplaceDatabase(deployments.command('show <id>'), printDeployment)).description(
    'show all details of a deployment',
  );
  return deployments;
}

const columns: readonly Column<DeploymentRow>[] = [
  ...withNames(fieldColumns<DeploymentRow>({ ID: 'id', NAME: 'name' }), 'name'),
  ...fieldColumns<DeploymentRow>({
    STATUS: 'status',
    PROVIDER: 'provider',
    THERE: 'provider_instance_id',
    OFFER: 'offer',
    TEAM: 'team_id',
  }),
  {
    head: 'AN HOUR',
    key: 'usd_per_hour',
    value: ({ usd_per_hour: usd }) => usd,
    text: ({ usd_per_hour: usd }) => usdToDollars(usd),
  },
  ...fieldColumns<DeploymentRow>({ CREATED: 'created_at', CONFIRMED: 'confirmed_at' }),
];

async function printDeployments({ store: { read } }: CommandDeps, flags: DeploymentFlags): Promise<void> {
  const { team, provider: providerId, status } = flags;
  const teamId = team === undefined ? undefined : (await findTeam(read.teams, team)).id;
  const query = { teamId, providerId, status, limit: toReadLimit(flags) };
  const { deployments } = await listDeployments(read, query);
  printRecords(deployments, columns, flags, 'There is no such deployment.');
}

/** The marketplace's contract limits a name only by the size of a request. */
const LONGEST_NAME = 255;

/** The list's columns, and further details. */
const facts: readonly Column<DeploymentDetail>[] = [
  ...columns.map((column) =>
    column.key === 'name'
      ? { ...column, text: ({ name }: DeploymentRow) => cutName(name, LONGEST_NAME) }
      : column,
  ),
  ...fieldColumns<DeploymentDetail>({
    'Name at the provider': 'provider_name',
    Region: 'region',
    User: 'user_id',
    Launch: 'launch',
    'Request id': 'request_id',
    Endpoint: 'endpoint',
    Failure: 'failure_reason',
    'Failure details': 'failure_details',
    'Change in progress': 'action',
    'To be confirmed': 'suspicion',
    'SSH proof': 'ssh',
    'Clean-up at the provider': 'cleanup',
  }),
  {
    head: 'Lost',
    key: 'lost',
    value: ({ lost }) => lost,
    text: ({ id, lost }) =>
      lost
        ? `yes: its instance is kept if it turns up again; to delete it: berth marketplace losses clean-up ${id}`
        : 'no',
  },
  ...fieldColumns<DeploymentDetail>({ Started: 'started_at', Stopped: 'paused_at', Ended: 'ended_at' }),
];

async function printDeployment(
  { store: { read }, clock }: CommandDeps,
  id: string,
  flags: OutputFlag,
): Promise<void> {
  const found = await readDeployment(read, id, clock.now());
  if (found === null)
    throw new Fatal(
      `There is no deployment "${id}": \`berth marketplace deployments ls --status all\` lists them.`,
    );
  const { cost_usd } = found;
  if (isData(flags)) return printData(flags, { ...toFields(found, facts), cost_usd });
  for (const { head, value, text } of facts) {
    const known = value(found);
    if (known !== null) printLine(`${head.toLowerCase().padEnd(26)}${text?.(found) ?? known}`);
  }
  printLine(
    `${'cost'.padEnd(26)}${usdToDollars(cost_usd)}; rate by rate: berth marketplace explain-bill ${id}`,
  );
}
