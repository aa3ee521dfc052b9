/** A request to the reference. */
export interface ReferenceRequest {
  method: string;
  /** Below the base URL. */
  path: string;
  /** In O:'s notation, `POST /instances/{instanceId}/stop`; undefined if there is none. */
  route?: string;
  query: URLSearchParams;
  /** Lowercase names. */
  headers: Readonly<Record<string, string>>;
  text: string;
}

/** An answer before serialization. */
export interface WireAnswer {
  status: number;
  headers: Record<string, string>;
  /** Absent: no body. */
  json?: unknown;
  /** Sent unchanged, instead of `json`. */
  raw?: string;
}

export function json(status: number, body: unknown): WireAnswer {
  return { status, headers: {}, json: body };
}
