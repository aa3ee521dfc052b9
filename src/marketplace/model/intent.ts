import { ApiError, type ErrorCode } from '../contract/errors.ts';

/**
 * A change that was asked for and is not over. A request writes it into the row and waits for the row; the worker that
 * holds the range of the row sends it. While there is one, other changes of the row get 409, except a terminate.
 */
export interface Intent<Kind extends string = string> {
  /** The revision of the row that it was written with: unique in the row. */
  id: number;
  kind: Kind;
  since: number;
  /** Who asked: the id of a user. */
  by: string;
  /** It is sent by then, or withdrawn: a request waits until then. Null: it has no such end. */
  until: number | null;
  /**
   * How many calls were sent for this change; only the answer to the last one decides. A refusal of the first one proves
   * that nothing happened; a refusal of a later one need not prove it.
   */
  attempt: number;
  /** When that call was sent. Null: none was sent for this intent. */
  sentAt: number | null;
  /**
   * What is known of that call. `accepted`: the provider does it. A number: the status of an answer that leaves it open.
   * Null: no answer.
   */
  answer: 'accepted' | number | null;
}

/** Why a change of a row was not made: the last one that was refused. */
export interface Refusal {
  /** Of the {@link Intent}. */
  id: number;
  code: ErrorCode;
  message: string;
  details?: Record<string, unknown>;
}

/** Whether no call was sent for it. */
export function isUnsent({ sentAt }: Pick<Intent, 'sentAt'>): boolean {
  return sentAt === null;
}

/** Whether it may not be sent any more. */
export function isExpired({ sentAt, until }: Pick<Intent, 'sentAt' | 'until'>, now: number): boolean {
  return sentAt === null && until !== null && now >= until;
}

/** Whether a request waits for it: its provider is asked more often then. */
export function isAwaited(intent: Pick<Intent, 'until'> | null, now: number): boolean {
  return intent !== null && intent.until !== null && now < intent.until;
}

/** An intent that nothing was sent for yet. `attempt`: how many calls were sent for the same before. */
export function newIntent<Kind extends string>(
  { revision }: { revision: number },
  {
    kind,
    by,
    since,
    until,
    attempt = 0,
  }: Pick<Intent<Kind>, 'kind' | 'by' | 'since' | 'until'> & { attempt?: number },
): Intent<Kind> {
  return { id: revision + 1, kind, since, by, until, attempt, sentAt: null, answer: null };
}

/** The intent with one more call, which is sent once this is committed. */
export function withAttempt<I extends Intent>(intent: I, now: number): I {
  return { ...intent, attempt: intent.attempt + 1, sentAt: now, answer: null };
}

/** Whether `call` is still the last one that was sent for the intent of a row. */
export function isLastAttempt(current: Intent | null, call: Pick<Intent, 'id' | 'attempt'>): boolean {
  return current?.id === call.id && current.attempt === call.attempt;
}

export function toRefusal({ id }: Pick<Intent, 'id'>, { code, message, details }: ApiError): Refusal {
  return { id, code, message, ...(details !== undefined && { details }) };
}

export function fromRefusal({ code, message, details }: Refusal): ApiError {
  return new ApiError(code, message, details === undefined ? {} : { details });
}
