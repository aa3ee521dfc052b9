import type { KeyPair, KeyType } from './ssh-client.ts';

/** The key pairs that are injected into an instance. */
export const INJECTED_KEYS = ['first', 'second', 'third'] as const;
export type InjectedKey = (typeof INJECTED_KEYS)[number];

/**
 * The key pairs of a run: two or more for each instance that it buys, two for all creates that must be refused, and one that
 * is injected nowhere.
 */
export class KeyRing {
  readonly #newKeyPair: (comment: string, type: KeyType) => KeyPair;
  readonly #pairs = new Map<string, KeyPair>();
  /** The types of the keys of an instance that has its own. */
  readonly #types = new Map<number, readonly KeyType[]>();

  /** `newKeyPair` makes a pair and keeps its private key out of the transcript. */
  constructor(newKeyPair: (comment: string, type: KeyType) => KeyPair) {
    this.#newKeyPair = newKeyPair;
  }

  /** Gives an instance, by its ledger entry, keys of its own. */
  issue(entry: number, types: readonly KeyType[]): void {
    this.#types.set(entry, types);
  }

  /** The pair of an instance, by its ledger entry; without one the pair of the creates that must be refused. */
  pair(entry: number | undefined, name: InjectedKey): KeyPair {
    const types = entry === undefined ? undefined : this.#types.get(entry);
    const owner = types === undefined ? '' : `${entry}-`;
    return this.#pairOf(`${owner}${name}`, types?.[INJECTED_KEYS.indexOf(name)]);
  }

  /** The pair that is injected nowhere. */
  get other(): KeyPair {
    return this.#pairOf('other');
  }

  #pairOf(name: string, type: KeyType = 'ed25519'): KeyPair {
    const pair = this.#pairs.get(name) ?? this.#newKeyPair(name, type);
    this.#pairs.set(name, pair);
    return pair;
  }
}
