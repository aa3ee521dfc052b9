import { namedIds } from '../../marketplace/model/names.ts';
import type { Reader } from '../../marketplace/model/store.ts';
import { MARKETPLACE, type Ownership } from '../../sandbox/ownership.ts';

const EMAIL_DOMAIN = '@sandbox.test';

/** The e-mail address of the user of an account. */
export function emailOf(account: string): string {
  return `${account}${EMAIL_DOMAIN}`;
}

/** Whose deployments and volumes there are. The user and the team of one never change. */
export class Tenants {
  readonly #read: Reader;
  readonly #known = new Map<string, Ownership>();

  constructor(read: Reader) {
    this.#read = read;
  }

  async of(idOrName: string): Promise<Ownership | undefined> {
    const known = this.#known.get(idOrName) ?? (await this.#find(idOrName));
    if (known !== undefined) this.#known.set(idOrName, known);
    return known;
  }

  async #find(idOrName: string): Promise<Ownership | undefined> {
    const { deployments, volumes, teams } = this.#read;
    const { deployment, volume } = namedIds(idOrName) ?? { deployment: idOrName, volume: idOrName };
    const record = (await deployments.byId(deployment)) ?? (await volumes.byId(volume));
    if (record === null) return undefined;
    const account = await accountOf(this.#read, record.userId);
    const team = await teams.byId(record.teamId);
    const owner = team === null ? account : await accountOf(this.#read, team.ownerId);
    return { account, alsoOf: owner === account ? [MARKETPLACE] : [owner, MARKETPLACE] };
  }
}

/** The name of the account of a user. */
export async function accountOf({ users }: Pick<Reader, 'users'>, userId: string): Promise<string> {
  return (await users.byId(userId))?.email.replace(EMAIL_DOMAIN, '') ?? userId;
}
