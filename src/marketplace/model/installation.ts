import type { Random } from '../../ports/clock.ts';
import type { Store } from './store.ts';

const SETTING = 'installation_id';

/** The id of this marketplace, made at its first start: what it makes at providers carries it in its name. */
export async function ensureInstallationId({
  store,
  random,
}: {
  store: Store;
  random: Pick<Random, 'bytes'>;
}): Promise<string> {
  const known = await store.read.settings.get(SETTING);
  if (known !== null) return known;
  const made = random.bytes(4).toString('hex');
  return store.transact((tx) => tx.settings.putIfAbsent(SETTING, made));
}
