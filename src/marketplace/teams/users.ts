import type { Clock, Random } from '../../ports/clock.ts';
import { newId } from '../model/names.ts';
import { findTeam, OperatorError } from '../model/own-rows.ts';
import type { UserRecord } from '../model/people.ts';
import type { UserReader } from '../model/people-store.ts';
import { Duplicate, type Store } from '../model/store.ts';

interface Deps {
  store: Store;
  clock: Clock;
  random: Random;
}

const EMAIL = /^[^\s@<>,;:"]+@[^\s@<>,;:"]+$/;
const MAX_EMAIL_LENGTH = 254;

export type UserChanges = Partial<
  Pick<
    UserRecord,
    | 'name'
    | 'mayMakeKeys'
    | 'createLimit'
    | 'minimumRuntimeMinutes'
    | 'wantsDeploymentMail'
    | 'wantsMarketingMail'
  >
>;

/** Adds a user, without a key, to the named team (by id or slug) or to none. @throws {OperatorError} */
export async function addUser(
  { store, clock, random }: Deps,
  { email, name, team: idOrSlug, ...changes }: { email: string; team?: string | undefined } & UserChanges,
): Promise<UserRecord> {
  const address = email.trim().toLowerCase();
  if (!EMAIL.test(address) || address.length > MAX_EMAIL_LENGTH)
    throw new OperatorError(`"${email}" is not an e-mail address.`);
  const taken = () => new OperatorError(`A user ${address} already exists.`);
  return store
    .transact(async (tx) => {
      if ((await tx.users.byEmail(address)) !== null) throw taken();
      const team = idOrSlug === undefined ? null : await findTeam(tx.teams, idOrSlug);
      const record: UserRecord = {
        id: newId(random, 'usr'),
        email: address,
        name: name ?? address.replace(/@.*/, ''),
        currentTeamId: team?.id ?? null,
        mayMakeKeys: false,
        createLimit: null,
        minimumRuntimeMinutes: null,
        wantsDeploymentMail: false,
        wantsMarketingMail: true,
        createdAt: clock.now(),
        suspension: null,
        ...changes,
      };
      assertSettings(record);
      await tx.users.insert(record);
      if (team !== null)
        await tx.teams.putMember({
          teamId: team.id,
          userId: record.id,
          role: 'member',
          joinedAt: record.createdAt,
        });
      return record;
    })
    .catch((error) => {
      throw error instanceof Duplicate ? taken() : error;
    });
}

/** Changes the settings of a user that an operator controls. @throws {OperatorError} */
export async function changeUser(
  { store }: Pick<Deps, 'store'>,
  email: string,
  changes: UserChanges,
): Promise<UserRecord> {
  return store.transact(async (tx) => {
    const changed = { ...(await findUser(tx.users, email)), ...changes };
    assertSettings(changed);
    await tx.users.update(changed);
    return changed;
  });
}

/** The user with this e-mail address or id. @throws {OperatorError} */
export async function findUser(users: UserReader, emailOrId: string): Promise<UserRecord> {
  const named = await users.byEmail(emailOrId.trim().toLowerCase());
  // A read by the id locks the row if this is a transaction.
  const user = await users.byId(named?.id ?? emailOrId);
  if (user === null)
    throw new OperatorError(
      `There is no user "${emailOrId}": see \`berth marketplace users ls\`.`,
      'not_found',
    );
  return user;
}

function assertSettings({ createLimit, minimumRuntimeMinutes }: UserRecord): void {
  if (createLimit !== null && (!Number.isInteger(createLimit) || createLimit < -1))
    throw new OperatorError('A create limit must be a whole number, 0 or more; -1 means no limit.');
  if (minimumRuntimeMinutes !== null && !(minimumRuntimeMinutes >= 0))
    throw new OperatorError('A minimum runtime must be a number of minutes, 0 or more.');
}
