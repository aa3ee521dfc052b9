import { Fatal } from '../../ports/errors.ts';
import { ApiError, forbidden, notFound } from '../contract/errors.ts';
import type { DeploymentRecord } from './deployment-record.ts';
import type { Standing, TeamRecord } from './people.ts';
import type { TeamReader } from './people-store.ts';
import type { Reader } from './store.ts';
import type { VolumeRecord } from './volume-record.ts';

/** What a request does with a row. A suspended user or team may still `end`: terminate, detach and delete. */
export type Purpose = 'read' | 'change' | 'end';

/** Locks the row if `read` is a transaction. @throws {ApiError} as {@link own} */
export async function ownDeployment(
  { deployments, teams }: Pick<Reader, 'deployments' | 'teams'>,
  caller: Caller,
  id: string,
  purpose: Purpose,
): Promise<DeploymentRecord> {
  return own(teams, caller, await deployments.byId(id), 'deployment', purpose);
}

/** As {@link ownDeployment}. */
export async function ownVolume(
  { volumes, teams }: Pick<Reader, 'volumes' | 'teams'>,
  caller: Caller,
  volumeId: string,
  purpose: Purpose,
): Promise<VolumeRecord> {
  return own(teams, caller, await volumes.byVolumeId(volumeId), 'volume', purpose);
}

/** @throws {ApiError} NOT_FOUND, or FORBIDDEN to a caller who is not in its team or may not do this */
export async function own<T extends { teamId: string; userId: string }>(
  teams: TeamReader,
  { userId, actsFor }: Caller,
  record: T | null,
  what: string,
  purpose: Purpose,
): Promise<T> {
  if (record === null) throw notFound(what);
  actsFor?.(record.teamId);
  const standing = await teams.standing(record.teamId, userId);
  if (standing === null || standing.role === null) throw forbidden(what);
  if (purpose === 'read') return record;
  if (purpose === 'change') assertNotSuspended(standing);
  if (standing.role !== 'member' || standing.memberRights === 'all' || record.userId === userId)
    return record;
  throw new ApiError(
    'FORBIDDEN',
    `Another member of the team made this ${what}: only they, an admin or the owner may change or end it.`,
    { details: { reason: 'not_own' } },
  );
}

/** @throws {ApiError} FORBIDDEN with the operator's reason */
export function assertNotSuspended({ userSuspension, teamSuspension }: Standing): void {
  const suspension = userSuspension ?? teamSuspension;
  if (suspension === null) return;
  const who = userSuspension === null ? 'This team' : 'Your account';
  throw new ApiError(
    'FORBIDDEN',
    `${who} is suspended: ${suspension.reason}. You can still read, terminate, detach and delete.`,
    { details: { reason: userSuspension === null ? 'team_suspended' : 'user_suspended' } },
  );
}

/** The team with this id or slug; null: there is none. If both match, the id wins. */
export async function teamOf(teams: TeamReader, idOrSlug: string): Promise<TeamRecord | null> {
  const known = await teams.byId(idOrSlug);
  if (known !== null) return known;
  const found = await teams.bySlug(idOrSlug);
  // A read by the id locks the row if this is a transaction.
  return found && teams.byId(found.id);
}

/** The team with this id or slug. @throws {OperatorError} */
export async function findTeam(teams: TeamReader, idOrSlug: string): Promise<TeamRecord> {
  const team = await teamOf(teams, idOrSlug);
  if (team === null) throw noSuchTeam(idOrSlug);
  return team;
}

export function noSuchTeam(idOrSlug: string): OperatorError {
  return new OperatorError(
    `There is no team "${idOrSlug}": see \`berth marketplace teams ls\`.`,
    'not_found',
  );
}

/** The user who sends a request. Other facts about the user are read in the transaction that needs them. */
export interface Caller {
  userId: string;
  /** Called with the team that the request concerns, for the log. */
  actsFor?: (teamId: string) => void;
}

export class OperatorError extends Fatal {
  override readonly name = 'OperatorError';
  /** The error code in the operator API's answer. */
  readonly code: 'invalid_request' | 'not_found';

  constructor(message: string, code: OperatorError['code'] = 'invalid_request') {
    super(message);
    this.code = code;
  }
}
