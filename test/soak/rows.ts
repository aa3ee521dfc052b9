import pg from 'pg';

/** The rows of the marketplace that the verdict reads. Times are milliseconds since the epoch. */
export interface Rows {
  deployments: DeploymentRow[];
  volumes: VolumeRow[];
  attachments: { volumeId: string; deploymentId: string; state: string }[];
}

export interface DeploymentRow {
  id: string;
  teamId: string;
  status: string;
  providerName: string;
  providerInstanceId: string | null;
  cleanup: string;
  failureReason: string | null;
  startedAt: number | null;
  stoppedAt: number | null;
  rateMicroUsd: number;
  stoppedRateMicroUsd: number | null;
  totalCostMicroUsd: number;
}

export interface VolumeRow {
  /** Internal; `attachments` has it. */
  id: string;
  /** What paths take. */
  volumeId: string;
  teamId: string;
  status: string;
  sizeGb: number;
  providerName: string;
  providerVolumeId: string | null;
  cleanup: string;
  startedAt: number | null;
  deletedAt: number | null;
  totalCostMicroUsd: number;
}

const TEXT = String;
const NUMBER = Number;
const orNull =
  <T>(of: (value: unknown) => T) =>
  (value: unknown): T | null =>
    value === null ? null : of(value);

type Columns<Row> = { [Name in keyof Row]: (value: unknown) => Row[Name] };

const deployment: Columns<DeploymentRow> = {
  ...{ id: TEXT, teamId: TEXT, status: TEXT, providerName: TEXT, cleanup: TEXT },
  ...{ providerInstanceId: orNull(TEXT), failureReason: orNull(TEXT) },
  ...{ startedAt: orNull(NUMBER), stoppedAt: orNull(NUMBER) },
  ...{ rateMicroUsd: NUMBER, stoppedRateMicroUsd: orNull(NUMBER), totalCostMicroUsd: NUMBER },
};
const volume: Columns<VolumeRow> = {
  ...{ id: TEXT, volumeId: TEXT, teamId: TEXT, status: TEXT, sizeGb: NUMBER, providerName: TEXT },
  ...{ providerVolumeId: orNull(TEXT), cleanup: TEXT },
  ...{ startedAt: orNull(NUMBER), deletedAt: orNull(NUMBER), totalCostMicroUsd: NUMBER },
};
const attachment: Columns<Rows['attachments'][number]> = { volumeId: TEXT, deploymentId: TEXT, state: TEXT };

/** All of them as of one moment. */
export async function readRows(url: string): Promise<Rows> {
  return connected(url, async (client) => {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    return {
      deployments: await read(client, 'deployments', deployment),
      volumes: await read(client, 'volumes', volume),
      attachments: await read(client, 'attachments', attachment),
    };
  });
}

/** How many deployments there are of each status. */
export async function countDeployments(url: string): Promise<Record<string, number>> {
  return connected(url, async (client) => {
    const { rows } = await client.query<{ status: string; count: string }>(
      'SELECT status, count(*) AS count FROM deployments GROUP BY status',
    );
    return Object.fromEntries(rows.map(({ status, count }) => [status, Number(count)]));
  });
}

async function read<Row extends object>(
  client: pg.Client,
  table: string,
  columns: Columns<Row>,
): Promise<Row[]> {
  const fields = Object.entries(columns) as [string, (value: unknown) => unknown][];
  const names = fields.map(([name]) => `${toSnakeCase(name)} AS "${name}"`);
  const { rows } = await client.query(`SELECT ${names.join(', ')} FROM ${table}`);
  return rows.map((row) => Object.fromEntries(fields.map(([name, of]) => [name, of(row[name])])) as Row);
}

function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

async function connected<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}
