import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import { disagreements } from './books.ts';
import { type Market, PLACEMENTS } from './buyers.ts';
import { insistently, sleep } from './dice.ts';
import type { Journal } from './journal.ts';
import type { Setting } from './setting.ts';

/** After the last blow, everything must be quiet by then. */
const QUIET_WITHIN_MS = 120_000;

type Ledgers = Pick<Setting, 'platform' | 'database' | 'catalog'>;

/** Waits until nothing is under way and all books agree; how long it took, null: they never did. */
export async function balance(market: Market, ledgers: Ledgers, journal: Journal): Promise<number | null> {
  const begun = Date.now();
  for (;;) {
    const found = await findings(market, ledgers);
    if (found.length === 0) return Date.now() - begun;
    if (Date.now() - begun > QUIET_WITHIN_MS) {
      journal.lose('the books do not agree', { findings: found });
      return null;
    }
    await sleep(250);
  }
}

async function findings(market: Market, { platform, database, catalog }: Ledgers): Promise<string[]> {
  const books = await insistently(() => database.books());
  const truth = await insistently(() => platform.truth());
  const rows = new Map([
    ...books.instances.map(({ id, status }) => [id, status === 'DESTROYED'] as const),
    ...books.volumes.map(({ id, isDeleted }) => [id, isDeleted] as const),
  ]);
  const found = disagreements(books, truth, catalog);
  for (const { id, key, deleteSentAt, deleteAnsweredAt } of market.possessions) {
    if (id === undefined) continue;
    const isGone = rows.get(id);
    if (isGone === undefined) found.push(`${id} (${key}) was answered 201 and has no row`);
    else if (isGone && deleteSentAt === undefined) found.push(`${id} is gone, and nobody deleted it`);
    else if (!isGone && deleteAnsweredAt !== undefined) found.push(`${id} was deleted and is there`);
  }
  const known = new Set(market.possessions.map(({ id }) => id));
  return [...found, ...[...rows.keys()].filter((id) => !known.has(id)).map((id) => `${id} is nobody's`)];
}

/** Parallel creates on every server get exactly the units that are left. */
export async function sellOut(
  market: Market,
  { replicas, catalog, database }: Pick<Setting, 'replicas' | 'catalog' | 'database'>,
  journal: Journal,
): Promise<void> {
  for (const placement of PLACEMENTS.slice(0, 2)) {
    const { configuration_id: offerId, region } = placement;
    const { claims } = await insistently(() => database.books());
    const taken = claims.filter((claim) => claim.offerId === offerId && claim.region === region).length;
    const offered = catalog.offers.get(offerId)?.placements.find((entry) => entry.region === region)?.units;
    const units = offered ?? 0;
    const asks = Array.from({ length: units + 5 }, () =>
      market.begin('instances', { ...placement, ssh_keys: [newPublicKey()] }),
    );
    const answers = asks.map((possession, index) => {
      const replica = replicas[index % replicas.length];
      return replica !== undefined && market.create(possession, replica);
    });
    const sold = (await Promise.all(answers)).filter(Boolean).length;
    if (sold !== units - taken)
      journal.lose('a sale of what is left sells another number', { offerId, units, taken, sold });
  }
}

/** Deletes all that there is; then nothing may be left anywhere. */
export async function clear(
  market: Market,
  setting: Ledgers & Pick<Setting, 'replicas'>,
  journal: Journal,
): Promise<void> {
  const { replicas, database, platform } = setting;
  const [replica] = replicas;
  if (replica === undefined) return;
  const open = market.possessions.filter(
    ({ id, deleteAnsweredAt }) => id !== undefined && deleteAnsweredAt === undefined,
  );
  for (const volume of open.filter(({ kind }) => kind === 'volumes')) await market.detach(volume, replica);
  await Promise.all(open.map((possession) => market.delete(possession, replica)));
  await balance(market, setting, journal);
  const { instances, volumes, claims } = await database.books();
  const { machines, volumes: disks } = await platform.truth();
  const left = [
    ...instances.filter(({ status }) => status !== 'DESTROYED'),
    ...volumes.filter(({ isDeleted }) => !isDeleted),
    ...[...claims, ...machines, ...disks],
  ];
  if (left.length > 0) journal.lose('everything was deleted and something is left', { left });
}
