/** A problem of a request, and its path. */
export interface Issue {
  path: string;
  message: string;
}

export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly details: Record<string, unknown> | undefined;

  constructor(status: number, code: string, message: string, details?: Record<string, unknown>) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

export const notFound = (what: string): ApiError =>
  new ApiError(404, 'not_found', `There is no such ${what}.`);

/** @throws {ApiError} 400, if there is any issue */
export function refuse(issues: readonly Issue[]): void {
  const [first] = issues;
  if (first === undefined) return;
  const message = first.path === '' ? first.message : `${first.path}: ${first.message}`;
  throw new ApiError(400, 'invalid_request', message, { issues });
}
