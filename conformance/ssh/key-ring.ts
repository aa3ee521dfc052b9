import type { KeyPair, SshClient } from './ssh-client.ts';

/** The key pairs that are injected into an instance. */
export type InjectedKey = 'first' | 'second';

/**
 * The key pairs of a run: two for each instance that it buys, two for all creates that must be refused, and one that is
 * injected nowhere.
 */
export class KeyRing {
  readonly #newKeyPair: (comment: string) => KeyPair;
  readonly #pairs = new Map<string, KeyPair>();
  readonly #owners = new Set<number>();

  /** `newKeyPair` makes a pair and keeps its private key out of the transcript. */
  constructor(newKeyPair: SshClient['newKeyPair']) {
    this.#newKeyPair = newKeyPair;
  }

  /** Gives an instance, by its ledger entry, keys of its own. */
  issue(entry: number): void {
    this.#owners.add(entry);
  }

  /** The pair of an instance, by its ledger entry; without one the pair of the creates that must be refused. */
  pair(entry: number | undefined, name: InjectedKey): KeyPair {
    const owner = entry !== undefined && this.#owners.has(entry) ? `${entry}-` : '';
    return this.#pairOf(`${owner}${name}`);
  }

  /** The pair that is injected nowhere. */
  get other(): KeyPair {
    return this.#pairOf('other');
  }

  #pairOf(name: string): KeyPair {
    const pair = this.#pairs.get(name) ?? this.#newKeyPair(name);
    this.#pairs.set(name, pair);
    return pair;
  }
}
