import { ApiError, type ErrorCode } from '../contract/errors.ts';
import type { MarketplaceOptions } from './options.ts';

const progressTexts = {
  pause: 'The deployment is being stopped.',
  resume: 'The deployment is being started.',
  restart: 'The deployment is being restarted.',
  create: 'The volume is being created.',
  attach: 'A volume is being attached.',
  detach: 'A volume is being detached.',
  resize: 'The volume is being resized.',
  delete: 'The volume is being deleted.',
};
export type IntentKind = keyof typeof progressTexts;

/**
 * A requested change that is not finished. A request writes it into the row and waits; the worker that leases the row's
 * provider sends it. Until it is over or times out, other changes of the row get 409, except a terminate.
 */
export interface Intent<Kind extends IntentKind = IntentKind> {
  /** The revision of the row at which it was written; unique within the row. */
  id: number;
  kind: Kind;
  since: number;
  /** The id of the user who asked. */
  by: string;
  /** The deadline for sending, after which the intent is withdrawn. A request waits until then. Null: no deadline. */
  until: number | null;
  /** A refusal of the first call proves that nothing happened; a refusal of a later one may not. */
  attempt: number;
  /** When the last call was sent. Null: none was sent for this intent. */
  sentAt: number | null;
  /** `accepted`: the provider carries it out. A number: the HTTP status of an inconclusive answer. Null: no answer. */
  answer: 'accepted' | number | null;
}

export interface Refusal {
  /** The id of the {@link Intent}. */
  id: number;
  code: ErrorCode;
  message: string;
  details?: Record<string, unknown>;
}

export function isUnsent({ sentAt }: Pick<Intent, 'sentAt'>): boolean {
  return sentAt === null;
}

/** Whether the intent is to be withdrawn. An earlier call for the same change may have taken effect. */
export function isExpired({ sentAt, until, attempt }: Intent, now: number): boolean {
  return sentAt === null && attempt === 0 && until !== null && now >= until;
}

/** Whether a request waits for the intent. Its provider is then polled more often. */
export function isAwaited(intent: Pick<Intent, 'until'> | null, now: number): boolean {
  return intent !== null && intent.until !== null && now < intent.until;
}

/** Whether the intent has reached the longest duration of a change. It then blocks no other change. */
export function hasTimedOut(
  { since }: Pick<Intent, 'since'>,
  now: number,
  { polling }: MarketplaceOptions,
): boolean {
  return now - since >= polling.actionMs;
}

/** The error while another change is in progress (M: 409). */
export function changeInProgress(kind: IntentKind): ApiError {
  const message = `${progressTexts[kind]} Wait a few minutes and try again.`;
  return new ApiError('CHANGE_IN_PROGRESS', message, { details: { action: kind } });
}

/** An intent for which nothing was sent yet. `attempt`: calls sent earlier for the same change. */
export function newIntent<Kind extends IntentKind>(
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

/** The intent with one more call, which is sent after this is committed. */
export function withAttempt<I extends Intent>(intent: I, now: number): I {
  return { ...intent, attempt: intent.attempt + 1, sentAt: now, answer: null };
}

/** Whether `call` is still the last call sent for the intent of the row. */
export function isLastAttempt(current: Intent | null, call: Pick<Intent, 'id' | 'attempt'>): boolean {
  return current?.id === call.id && current.attempt === call.attempt;
}

export function toRefusal({ id }: Pick<Intent, 'id'>, { code, message, details }: ApiError): Refusal {
  return { id, code, message, details };
}

export function fromRefusal({ code, message, details }: Refusal): ApiError {
  return new ApiError(code, message, { details });
}
