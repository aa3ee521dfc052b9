import type { Deps } from '../deps.ts';
import type { Transaction } from '../ports/store.ts';
import type { TeamRecord } from '../records/people.ts';
import { type News, queueMail } from './outbox.ts';

/** Mails news of a team's money to its owner and admins. */
export async function mailManagers(
  deps: Pick<Deps, 'random' | 'clock'>,
  tx: Pick<Transaction, 'teams' | 'users' | 'mail'>,
  team: Pick<TeamRecord, 'id'>,
  news: News,
): Promise<void> {
  for (const { userId, role } of await tx.teams.members(team.id)) {
    if (role === 'member') continue;
    const user = await tx.users.byId(userId);
    if (user !== null) await queueMail(deps, tx, user, news);
  }
}
