import { ApiError, invalidRequest } from '../../contract/errors.ts';
import type { BodyRefusals } from '../../http/body.ts';
import type { WireProblem, WireRefusal } from '../../http/server.ts';

/** O: Errors: the envelope also for what is wrong with a body. */
export const bodyRefusals: BodyRefusals = {
  malformed: (message) => invalidRequest([{ path: '', message }]),
  tooLarge: (maxBytes) =>
    new ApiError('payload_too_large', `The request body is larger than ${maxBytes} bytes.`, {
      details: { max_bytes: maxBytes },
    }),
};

const wireErrors: Readonly<Record<WireProblem, () => ApiError>> = {
  malformed: () => invalidRequest([{ path: '', message: 'expected a well-formed HTTP/1.1 request' }]),
  timed_out: () => new ApiError('request_timeout', 'The request did not arrive in full in time.'),
  headers_too_large: () => new ApiError('headers_too_large', 'The request headers are too large.'),
};

/** O: Errors: the envelope also for what is wrong below HTTP. */
export function refuseWire(problem: WireProblem): WireRefusal {
  const error = wireErrors[problem]();
  return { status: error.status, code: error.code, body: error.toBody() };
}
