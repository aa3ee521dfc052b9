import { and, asc, count, desc, eq, gte, inArray, min, or, type SQL, sql } from 'drizzle-orm';
import {
  type DeploymentRecord,
  isActive,
  type Launch,
} from '../../../marketplace/model/deployment-record.ts';
import type { DeploymentReader, DeploymentWriter } from '../../../marketplace/model/store.ts';
import { contains } from '../../queries/connection.ts';
import { asEncoded, encodeRow } from '../../queries/encoded-row.ts';
import { prepared } from '../../queries/prepared.ts';
import { firstOf } from '../../queries/rows.ts';
import type { Connection } from './connection.ts';
import { isAfter } from './pages.ts';

const deploymentById = prepared(({ db, deployments, locking }: Connection, { id }: { id: string }) =>
  locking.rows(db.select().from(deployments).where(eq(deployments.id, id))),
);

const deploymentByProviderName = prepared(({ db, deployments }: Connection, { name }: { name: string }) =>
  db.select().from(deployments).where(eq(deployments.providerName, name)),
);

const deploymentsByInstance = prepared(
  ({ db, deployments }: Connection, { provider, instance }: { provider: string; instance: string }) =>
    db
      .select()
      .from(deployments)
      .where(and(eq(deployments.providerInstanceId, instance), eq(deployments.providerId, provider)))
      .orderBy(asc(deployments.createdAt), asc(deployments.id)),
);

const deploymentsToSync = prepared((connection: Connection, { provider }: { provider: string }) =>
  deploymentsOf(connection, provider, needsSync(connection)),
);

const newDeploymentsToSync = prepared((connection: Connection, { provider }: { provider: string }) =>
  deploymentsOf(connection, provider, needsSyncNow(connection)),
);

function deploymentsOf({ db, deployments }: Connection, provider: string, condition: SQL) {
  return db
    .select({
      id: deployments.id,
      status: deployments.status,
      stoppedAt: deployments.stoppedAt,
      launchState: sql<Launch['state']>`${deployments.launch} ->> 'state'`,
      isAsked:
        sql<boolean>`coalesce(CAST(${deployments.action} ->> 'attempt' AS INTEGER) = 0, FALSE)`.mapWith(
          Boolean,
        ),
    })
    .from(deployments)
    .where(and(eq(deployments.providerId, provider), condition))
    .orderBy(asc(deployments.createdAt), asc(deployments.id));
}

/** One statement, so that no deployment is counted in two states. */
const pricesOfTeam = prepared(({ db, deployments }: Connection, { teamId }: { teamId: string }) => {
  const { status, action, originalRateMicroUsd, originalStoppedRateMicroUsd } = deployments;
  const prices = { status, originalRateMicroUsd, originalStoppedRateMicroUsd };
  const pricesWhere = (isResuming: boolean, condition: SQL) =>
    db
      .select({
        ...prices,
        isResuming: sql<number>`${sql.raw(isResuming ? '1' : '0')}`,
        count: count(),
      })
      .from(deployments)
      .where(and(eq(deployments.teamId, teamId), condition))
      .groupBy(status, originalRateMicroUsd, originalStoppedRateMicroUsd);
  // The first two conditions are those of a partial index.
  const resumes = sql`${status} = 'stopped' AND ${action} IS NOT NULL AND ${action} ->> 'kind' = 'resume'`;
  return pricesWhere(false, inActive(deployments)).unionAll(pricesWhere(true, resumes));
});

export function deploymentReader(connection: Connection): DeploymentReader {
  const { db, deployments } = connection;
  return {
    byId: (id) => firstOf(deploymentById(connection, { id })),
    list: async ({ text, teamIds, userId, providerId, statuses, after, offset = 0, limit }) => {
      const [firstTeam, ...otherTeams] = teamIds ?? [];
      const isOneTeam = firstTeam !== undefined && otherTeams.length === 0;
      const found = db
        .select()
        .from(deployments)
        .where(
          and(
            isAfter(deployments.createdAt, deployments.id, after),
            isOneTeam ? eq(deployments.teamId, firstTeam) : teamIds && inArray(deployments.teamId, teamIds),
            userId === undefined ? undefined : eq(deployments.userId, userId),
            providerId === undefined ? undefined : eq(deployments.providerId, providerId),
            statuses && inArray(deployments.status, statuses),
            // Active deployments have an index of their own, whose size does not depend on the ended ones.
            statuses?.every((status) => isActive({ status })) ? inActive(deployments) : undefined,
            text === undefined ? undefined : isFound(connection, text),
          ),
        )
        .orderBy(desc(deployments.createdAt), desc(deployments.id));
      return limit === undefined ? found : found.limit(limit).offset(offset);
    },
    toSync: (provider) => deploymentsToSync(connection, { provider }),
    newToSync: (provider) => newDeploymentsToSync(connection, { provider }),
    byProviderName: (name) => firstOf(deploymentByProviderName(connection, { name })),
    byInstance: (provider, instance) => deploymentsByInstance(connection, { provider, instance }),
    activeByPrice: async (teamId) => {
      const rows = await pricesOfTeam(connection, { teamId });
      return rows.flatMap((row) =>
        // Deployments that are being started also count as stopped.
        row.isResuming === 0
          ? [{ ...row, isResuming: false }]
          : [
              { ...row, isResuming: true },
              { ...row, isResuming: false, count: -row.count },
            ],
      );
    },
    countToSync: async () =>
      db
        .select({ providerId: deployments.providerId, count: count() })
        .from(deployments)
        .where(needsSync(connection))
        .groupBy(deployments.providerId)
        .orderBy(asc(deployments.providerId)),
    countActive: async () =>
      db
        .select({ status: deployments.status, count: count() })
        .from(deployments)
        .where(inActive(deployments))
        .groupBy(deployments.status),
    countActiveByProvider: async () =>
      db
        .select({
          providerId: deployments.providerId,
          status: deployments.status,
          count: count(),
          confirmedUntil: min(deployments.observedAt),
        })
        .from(deployments)
        .where(inActive(deployments))
        .groupBy(deployments.providerId, deployments.status),
    countOutcomes: async (since) =>
      db
        .select({
          providerId: deployments.providerId,
          status: deployments.status,
          failureReason: deployments.failureReason,
          count: count(),
        })
        .from(deployments)
        .where(gte(deployments.createdAt, since))
        .groupBy(deployments.providerId, deployments.status, deployments.failureReason),
    countLaunches: async (since) => {
      const { providerId, createdAt, startedAt, status, failureReason } = deployments;
      const hour = sql<number>`${createdAt} / 3600000`.mapWith(Number);
      const reason = sql<
        typeof failureReason._.data | null
      >`CASE WHEN ${status} = 'failed' AND ${startedAt} IS NULL THEN ${failureReason} END`;
      const found = await db
        .select({ providerId, hour, reason, count: count() })
        .from(deployments)
        .where(gte(createdAt, since))
        .groupBy(providerId, hour, reason);
      return found.map((row) => ({ ...row, hour: row.hour * 3_600_000 }));
    },
    countUnproved: async () => {
      const [onlineAt, provedAt] = ['onlineAt', 'provedAt'].map(
        (key) => sql`${deployments.sshProof} ->> ${sql.raw(`'${key}'`)}`,
      );
      return db
        .select({ providerId: deployments.providerId, count: count() })
        .from(deployments)
        .where(
          // The first condition is that of the partial index.
          sql`${deployments.status} IN ('deploying', 'running', 'stopped') AND ${deployments.status} = 'deploying'
            AND ${onlineAt} IS NOT NULL AND ${provedAt} IS NULL`,
        )
        .groupBy(deployments.providerId)
        .orderBy(asc(deployments.providerId));
    },
    countByGpuType: async (since) =>
      db
        .select({ gpuType: deployments.gpuType, count: count() })
        .from(deployments)
        .where(gte(deployments.createdAt, since))
        .groupBy(deployments.gpuType),
  };
}

function isFound(connection: Connection, text: string): SQL | undefined {
  const { id, name, providerName, providerInstanceId, ipAddress, failureReason } = connection.deployments;
  const shown = [id, sql`CAST(${name} AS TEXT)`, providerName, providerInstanceId, ipAddress, failureReason];
  return or(...shown.map((column) => contains(connection, column, text)));
}

/** The same text as the partial indexes' condition, so that the rows are counted in the index. */
function inActive({ status }: Connection['deployments']): SQL {
  return sql`${status} IN ('deploying', 'running', 'stopped')`;
}

/** The same text as the partial index's condition, so that the index is used. */
function needsSync({ deployments }: Connection): SQL {
  return sql`(${deployments.status} IN ('deploying', 'running', 'stopped') OR ${deployments.cleanup} = 'wanted')`;
}

/** As above, for the index of new deployments. */
function needsSyncNow({ deployments }: Connection): SQL {
  return sql`(${deployments.status} = 'deploying' OR ${deployments.cleanup} = 'wanted' OR ${deployments.action} IS NOT NULL)`;
}

const insertDeployment = prepared(({ db, deployments }: Connection, row: DeploymentRecord) =>
  db.insert(deployments).values(asEncoded(row)),
);

const updateDeployment = prepared(({ db, deployments }: Connection, { id, ...changes }: Changes) =>
  db.update(deployments).set(asEncoded(changes)).where(eq(deployments.id, id)),
);

/**
 * Columns that no update writes: constants, and columns that only the ledger writes. Indexes on other columns stay
 * untouched.
 */
const NOT_UPDATED = [
  'userId',
  'teamId',
  'providerId',
  'providerName',
  'gpuType',
  'createdAt',
  'orderedProviderRateMicroUsd',
  'totalCostMicroUsd',
  'lastCreditDeductionAt',
] as const;

type Changes = Omit<DeploymentRecord, (typeof NOT_UPDATED)[number]>;

function toChanges(record: DeploymentRecord): Changes {
  const changes: Changes & Partial<DeploymentRecord> = { ...record };
  for (const name of NOT_UPDATED) delete changes[name];
  return changes;
}

/** `changed` is called with the id of each written row. */
export function deploymentWriter(connection: Connection, changed: (id: string) => void): DeploymentWriter {
  const { db, deployments } = connection;
  return {
    ...deploymentReader(connection),
    insert: async (record) => {
      changed(record.id);
      await insertDeployment(connection, encodeRow(deployments, record));
    },
    update: async (record) => {
      changed(record.id);
      const changes = { ...toChanges(record), revision: record.revision + 1 };
      await updateDeployment(connection, encodeRow(deployments, changes));
    },
    recordObservations: async (observations) => {
      // The rows are sorted, so that two transactions that write the same ones cannot deadlock.
      const sorted = observations.toSorted((a, b) => (a.id < b.id ? -1 : 1));
      const recorded = new Set(sorted.length === 0 ? [] : await recordObservations(connection, sorted));
      return sorted.map(({ id }) => id).filter((id) => !recorded.has(id));
    },
    setCleanup: async (id, cleanup) =>
      void (await db.update(deployments).set({ cleanup }).where(eq(deployments.id, id))),
  };
}

/** Both databases name the columns of a VALUES list column1, column2 … */
async function recordObservations(
  { db, deployments }: Connection,
  batch: readonly { id: string; revision: number; at: number }[],
): Promise<string[]> {
  const rows = batch.map(
    ({ id, revision, at }) => sql`(CAST(${id} AS TEXT), CAST(${revision} AS INTEGER), CAST(${at} AS BIGINT))`,
  );
  const written = await db
    .update(deployments)
    .set({ observedAt: sql`seen.column3` })
    .from(sql`(VALUES ${sql.join(rows, sql`, `)}) AS seen`)
    .where(
      sql`${deployments.id} = seen.column1 AND ${deployments.revision} = seen.column2
        AND (${deployments.observedAt} IS NULL OR ${deployments.observedAt} <= seen.column3)`,
    )
    .returning({ id: deployments.id });
  return written.map(({ id }) => id);
}
