import { compareNames, sortNames } from '../../contract/compare-names.ts';
import { cutName } from '../../operator-kit/console/parts.ts';
import type { ConsoleDeps } from './deps.ts';

const toChoices = (names: Iterable<string>): (readonly [string, string])[] =>
  sortNames(names).map((name) => [name, name] as const);

/** What can be cordoned. */
export async function cordonChoices({ catalog, platforms }: ConsoleDeps) {
  const named = [catalog.offers, catalog.regions, platforms].flatMap((one) => toChoices(one.keys()));
  return { name: named, platform: toChoices(platforms.keys()) };
}

/** The values of the filters of the list of instances. */
export async function instanceChoices({ store: { read }, catalog, platforms }: ConsoleDeps) {
  const accounts = (await read.credentials.listAccounts()).toSorted((a, b) => compareNames(a.name, b.name));
  return {
    offer: toChoices(catalog.offers.keys()),
    region: toChoices(catalog.regions.keys()),
    platform: toChoices(platforms.keys()),
    account: accounts.map(({ id, name }) => [id, cutName(name)] as const),
  };
}
