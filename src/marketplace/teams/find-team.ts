import { OperatorError } from '../operator-error.ts';
import type { TeamReader } from '../ports/store.ts';
import type { TeamRecord } from '../records/people.ts';

/** The team of an id or a slug. @throws {OperatorError} */
export async function findTeam(teams: TeamReader, idOrSlug: string): Promise<TeamRecord> {
  const found = (await teams.bySlug(idOrSlug)) ?? (await teams.byId(idOrSlug));
  // Read by its id, it is locked where this is a transaction.
  const team = found && (await teams.byId(found.id));
  if (team === null)
    throw new OperatorError(`There is no team "${idOrSlug}": see \`berth marketplace teams list\`.`);
  return team;
}
