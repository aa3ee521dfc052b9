/** The name of the marketplace among the servers, and of its account at the providers. */
export const MARKETPLACE = 'marketplace';

/** The accounts of a request or a resource. */
export interface Ownership {
  /** For what the marketplace sends or makes: the account of the user of the deployment or the volume. */
  account?: string | undefined;
  /** Other accounts by which it is found: that of the team's owner, and `marketplace`, whose key was used. */
  alsoOf?: readonly string[] | undefined;
}

export function isOf(account: string, { account: own, alsoOf = [] }: Ownership): boolean {
  return account === own || alsoOf.includes(account);
}
