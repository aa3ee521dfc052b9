import type { Deps } from '../deps.ts';
import { newId } from '../ids.ts';
import { quietWatch } from '../ledger/balance-watch.ts';
import type { Transaction } from '../ports/store.ts';
import type { TeamRecord } from '../records/people.ts';

const MAX_SLUG_WORDS = 40;

/** Writes a new team with its owner. Without a `slug` it gets one of its name that nobody else has. */
export async function addTeam(
  tx: Pick<Transaction, 'teams'>,
  { clock, random }: Pick<Deps, 'clock' | 'random'>,
  { name, ownerId, slug }: { name: string; ownerId: string; slug?: string },
): Promise<TeamRecord> {
  const now = clock.now();
  const record: TeamRecord = {
    id: newId(random, 'team'),
    name,
    ownerId,
    balanceMicroUsd: 0,
    watch: quietWatch,
    createdAt: now,
    slug: slug ?? `${toWords(name)}-${random.bytes(4).toString('hex')}`,
  };
  await tx.teams.insert(record);
  await tx.teams.putMember({ teamId: record.id, userId: ownerId, role: 'owner', joinedAt: now });
  return record;
}

function toWords(name: string): string {
  const words = name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/['’\p{M}]/gu, '')
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_SLUG_WORDS)
    .replace(/^-+|-+$/g, '');
  return words === '' ? 'team' : words;
}
