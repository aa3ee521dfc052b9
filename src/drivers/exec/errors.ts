import { cleanText } from '../../orchestrator/model/platform-resource.ts';

/** The request did not reach the driver: nothing has begun. */
export class NotSent extends Error {
  override readonly name = 'NotSent';
}

/** The driver, or a proxy before it, refused the token: nothing has begun. */
export class Unauthorized extends Error {
  override readonly name = 'Unauthorized';
}

/** Why an answer was lost: the driver answered with an error, ended, was silent, or broke the protocol. */
export type Loss = 'error' | 'end' | 'silence' | 'invalid';

const remedies: Readonly<Record<Loss, string>> = {
  error:
    'Correct the cause in the error. If your platform refused a step, answer it with `failed` and a code, so that Berth knows what to do.',
  end: 'Catch each failure of a request, and answer it with `error`. The output on standard error shows where the program ended.',
  silence:
    'Answer each request within --timeout-s, exactly once and flushed; where a step takes longer, begin it, answer `pending`, and check its progress when the request comes again.',
  invalid:
    'Correct the field that is named; openapi/driver-protocol.json has each answer, such as `create.answer` and `Machine`.',
};

/** The request was sent, and its effect is unknown. */
export class AnswerLost extends Error {
  override readonly name = 'AnswerLost';
  readonly loss: Loss;

  /** What the author of the driver should do. */
  get remedy(): string {
    return remedies[this.loss];
  }

  constructor(message: string, loss: Loss) {
    super(message);
    this.loss = loss;
  }
}

/** The driver cannot be used with this Berth, because of its version or its capabilities. */
export class Incompatible extends Error {
  override readonly name = 'Incompatible';
}

/** A driver's text for use in a message: on one line, quoted and shortened. */
export function quoted(text: string): string {
  const clean = cleanText(text);
  return JSON.stringify(clean.length > 200 ? `${clean.slice(0, 199)}…` : clean);
}

export function messageOf(error: unknown): string {
  return cleanText(error instanceof Error ? error.message : String(error));
}
