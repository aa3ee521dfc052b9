import type { Instance } from '../../contract/instance.ts';
import type { Random } from '../../ports/clock.ts';
import type { Store } from './store.ts';

/** A new id such as `dep-0f3c…`, with 128 random bits. */
export function newId(
  random: Pick<Random, 'bytes'>,
  prefix: 'usr' | 'team' | 'key' | 'ssh' | 'dep' | 'vol' | 'seg' | 'txn' | 'mail' | 'disc' | 'alert',
): string {
  return `${prefix}-${random.bytes(16).toString('hex')}`;
}

/** An id that begins with a time: rows of the same time are adjacent in the index, so many inserts touch few pages. */
export function newIdAt(random: Pick<Random, 'bytes'>, prefix: 'seg' | 'txn', at: number): string {
  return `${prefix}-${at.toString(16).padStart(12, '0')}${random.bytes(10).toString('hex')}`;
}

const SETTING = 'installation_id';

/** The id of this marketplace, part of the names of everything made at providers. Created at the first start. */
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

/** A name from `toProviderName`, with the suffix that a provider may add to make it unique. */
const OURS = /^(bm-([0-9a-f]+)-([0-9a-f]{32}))(-.*)?$/;

/** Whether the instance was made under this name. Providers may append to a name that is taken (O: `name`). */
export function isNamed({ name = '' }: Pick<Instance, 'name'>, providerName: string): boolean {
  const lower = name.toLowerCase();
  return lower === providerName || lower.startsWith(`${providerName}-`);
}

/** The name under which this installation made the instance; null: it did not make it. */
export function ownName({ name = '' }: Pick<Instance, 'name'>, installationId: string): string | null {
  const [, providerName, installation] = OURS.exec(name.toLowerCase()) ?? [];
  return providerName !== undefined && installation === installationId ? providerName : null;
}

/** Whether the name shows that this installation made the instance for something other than `providerName`. */
export function isNamedForAnother(
  named: Pick<Instance, 'name'>,
  installationId: string,
  providerName: string,
): boolean {
  return (ownName(named, installationId) ?? providerName) !== providerName;
}

/** Whether the instance is already being destroyed or is destroyed. */
export function isBeingDestroyed({ status }: Partial<Pick<Instance, 'status'>>): boolean {
  return status === 'DESTROYING' || status === 'DESTROYED';
}

/**
 * The name of an instance at its provider: at most 63 lower-case characters, and never the display label. A lost
 * instance is found by it.
 */
export function toProviderName(installationId: string, deploymentId: string): string {
  return `bm-${installationId}-${deploymentId.slice(deploymentId.indexOf('-') + 1)}`;
}
