import { Fatal } from '../../ports/errors.ts';
import { forbidden, notFound } from '../contract/errors.ts';
import type { DeploymentRecord } from './deployment-record.ts';
import type { TeamRecord } from './people.ts';
import type { TeamReader } from './people-store.ts';
import type { Reader } from './store.ts';
import type { VolumeRecord } from './volume-record.ts';

/** Locks the row if `read` is a transaction. @throws {ApiError} NOT_FOUND, or FORBIDDEN to a caller of another team */
export async function ownDeployment(
  { deployments, teams }: Pick<Reader, 'deployments' | 'teams'>,
  caller: Caller,
  id: string,
): Promise<DeploymentRecord> {
  return own(teams, caller, await deployments.byId(id), 'deployment');
}

/** As {@link ownDeployment}. */
export async function ownVolume(
  { volumes, teams }: Pick<Reader, 'volumes' | 'teams'>,
  caller: Caller,
  volumeId: string,
): Promise<VolumeRecord> {
  return own(teams, caller, await volumes.byVolumeId(volumeId), 'volume');
}

/** @throws {ApiError} NOT_FOUND, or FORBIDDEN if the caller is not in the record's team */
export async function own<T extends { teamId: string }>(
  teams: TeamReader,
  { userId, actsFor }: Caller,
  record: T | null,
  what: string,
): Promise<T> {
  if (record === null) throw notFound(what);
  actsFor?.(record.teamId);
  if ((await teams.member(record.teamId, userId)) === null) throw forbidden(what);
  return record;
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
