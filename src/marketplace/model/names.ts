import type { Instance } from '../../contract/instance.ts';
import type { Random } from '../../ports/clock.ts';
import type { Store } from './store.ts';

/** Such as `dep-0f3c…`: 128 random bits. */
export function newId(
  random: Pick<Random, 'bytes'>,
  prefix: 'usr' | 'team' | 'key' | 'ssh' | 'dep' | 'vol' | 'seg' | 'txn' | 'mail' | 'disc' | 'alert',
): string {
  return `${prefix}-${random.bytes(16).toString('hex')}`;
}

/**
 * An id of the same form that begins with a time: rows of one time then stand side by side in the indexes of their ids,
 * and writing many of them writes few pages. 80 bits are random.
 */
export function newIdAt(random: Pick<Random, 'bytes'>, prefix: 'seg' | 'txn', at: number): string {
  return `${prefix}-${at.toString(16).padStart(12, '0')}${random.bytes(10).toString('hex')}`;
}

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

/** What `toProviderName` makes, and what a provider may have added to it to make it unique. */
const OURS = /^(bm-([0-9a-f]+)-[0-9a-f]{32})(-.*)?$/;

/** Whether the instance was made for this name: providers may add to a name that is taken (O: `name`). */
export function isNamed({ name = '' }: Pick<Instance, 'name'>, providerName: string): boolean {
  const told = name.toLowerCase();
  return told === providerName || told.startsWith(`${providerName}-`);
}

/** The name under which this installation made the instance; null: it did not. */
export function ownName({ name = '' }: Pick<Instance, 'name'>, installationId: string): string | null {
  const [, providerName, installation] = OURS.exec(name.toLowerCase()) ?? [];
  return providerName !== undefined && installation === installationId ? providerName : null;
}

/** Whether its name says that this installation made it for something else than `providerName`. */
export function isNamedForAnother(
  named: Pick<Instance, 'name'>,
  installationId: string,
  providerName: string,
): boolean {
  return (ownName(named, installationId) ?? providerName) !== providerName;
}

/** Whether nothing is left of it to delete. */
export function isBeingDestroyed({ status }: Instance): boolean {
  return status === 'DESTROYING' || status === 'DESTROYED';
}

/** Unique at every provider, by which a lost one is found: lower case, at most 63 characters, never the label. */
export function toProviderName(installationId: string, deploymentId: string): string {
  return `bm-${installationId}-${deploymentId.slice(deploymentId.indexOf('-') + 1)}`;
}
