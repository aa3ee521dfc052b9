import {
  ApiError,
  type ErrorCode,
  errorBodySchema,
  errorTable,
  invalidRequest,
} from '../../contract/errors.ts';
import { ApiErrors, type ErrorVocabulary } from '../../http/api/errors.ts';

/** O: Errors: the envelope of all errors. The operators' APIs of both products use it too. */
export function envelopeErrors(words: ErrorVocabulary<ErrorCode>['words']): ApiErrors<ErrorCode> {
  return new ApiErrors<ErrorCode>({
    table: errorTable,
    common: ['invalid_request', 'too_many_requests', 'internal', 'unavailable'],
    codes: {
      internal: 'internal',
      unavailable: 'unavailable',
      notFound: 'not_found',
      methodNotAllowed: 'method_not_allowed',
      payloadTooLarge: 'payload_too_large',
      requestTimeout: 'request_timeout',
      headersTooLarge: 'headers_too_large',
    },
    words,
    bodySchema: () => errorBodySchema,
    isOwn: (error) => error instanceof ApiError,
    create: (code, message, options) => new ApiError(code, message, options),
    malformed: (message) => invalidRequest([{ path: '', message }]),
    sizeDetails: (maxBytes) => ({ max_bytes: maxBytes }),
  });
}
