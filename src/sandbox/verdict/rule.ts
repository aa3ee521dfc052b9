import type { Breach } from '../journal/assertions.ts';
import type { JournalEntry } from '../journal/entry.ts';
import type { ClientJournal } from './client-journal.ts';

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
  const shown = { message, entries: entries.map(({ number }) => number) };
  return resource === undefined ? shown : { ...shown, resource };
}

/** The resource that a request concerned or made, even if its answer was lost. */
export function resourceOf({ resource, server }: JournalEntry): string | undefined {
  return resource ?? server?.resource;
}
