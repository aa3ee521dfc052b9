import { type Breach, breachesOf, isOfClient, lives, type ParsedAssertion } from '../journal/assertions.ts';
import type { JournalEntry } from '../journal/entry.ts';
import { isMatch } from '../journal/filter.ts';
import { MARKETPLACE } from '../options.ts';

/** One second more than the contract says: timers and networks are not exact. */
export const LONGEST_SILENCE_S = 31;

export interface Life {
  id: string;
  entries: readonly JournalEntry[];
}

const ANY = { provider: undefined, method: undefined };

/** The requests of one client, until now. */
export class ClientJournal {
  readonly account: string | undefined;
  readonly entries: readonly JournalEntry[];
  /** By resource. */
  readonly lives: readonly Life[];
  readonly now: number;

  /** Without an account, all requests except those that the marketplace sent. */
  constructor(all: readonly JournalEntry[], now: number, account: string | undefined) {
    this.account = account;
    this.now = now;
    this.entries = all.filter((entry) => isMatch(entry, { account }) && isOfClient(entry, account));
    this.lives = lives(this.entries).map(({ id, life }) => ({ id, entries: life }));
  }

  /** What providers got: the contract O: speaks of these requests only. */
  toProviders(): ClientJournal {
    return this.where(({ provider }) => provider !== MARKETPLACE);
  }

  where(isMeant: (entry: JournalEntry) => boolean): ClientJournal {
    return new ClientJournal(this.entries.filter(isMeant), this.now, this.account);
  }

  /** The violations of an assertion. */
  breaches(assertion: Exclude<ParsedAssertion, { assert: 'in_order' }>): Breach[] {
    return breachesOf({ ...assertion, where: { ...ANY, account: this.account } }, this.entries, this.now);
  }
}
