import { compareNames, sortNames } from '../../../contract/compare-names.ts';
import { cutName } from '../../../operator-kit/console/parts.ts';
import type { ConsoleDeps } from '../deps.ts';

/** The values of the filters of the list of instances. */
export async function instanceChoices({ store: { read }, catalog, platforms }: ConsoleDeps) {
  const accounts = (await read.credentials.listAccounts()).toSorted((a, b) => compareNames(a.name, b.name));
  const named = (names: Iterable<string>) => sortNames(names).map((name) => [name, name] as const);
  return {
    offer: named(catalog.offers.keys()),
    region: named(catalog.regions.keys()),
    platform: named(platforms.keys()),
    account: accounts.map(({ id, name }) => [id, cutName(name)] as const),
  };
}
