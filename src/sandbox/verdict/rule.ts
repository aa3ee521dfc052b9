import { type Breach, breachesOf, isOfClient, lives, type ParsedAssertion } from '../journal/assertions.ts';
import type { JournalEntry } from '../journal/entry.ts';
import { isMatch } from '../journal/filter.ts';
import { MARKETPLACE } from '../options.ts';

/** What a client did wrong. */
export interface Finding {
  message: string;
  /** Numbers of journal entries. */
  entries: number[];
  /** The id of the resource concerned. */
  resource?: string;
}

/** Why the journal cannot tell whether the client obeys a rule. */
export interface NotTested {
  notTested: string;
}

export interface Rule {
  id: string;
  /** The sentence that the client obeys, word for word, after its document. */
  cites: `${'O' | 'M'}: ${string}`;
  /** What is judged, in a sentence. */
  judges: string;
  judge(journal: ClientJournal): Finding[] | NotTested;
}

export function toFinding({ message, resource, entries }: Breach): Finding {
  return { message, entries: entries.map(({ number }) => number), resource };
}

/** The resource that a request concerned or made, even if its answer was lost. */
export function resourceOf({ resource, server }: JournalEntry): string | undefined {
  return resource ?? server?.resource;
}

/** One second more than the contract says: timers and networks are not exact. */
export const LONGEST_SILENCE_S = 31;

export interface Life {
  id: string;
  entries: readonly JournalEntry[];
}

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
    return breachesOf(
      { ...assertion, where: { provider: undefined, method: undefined, account: this.account } },
      this.entries,
      this.now,
    );
  }
}
