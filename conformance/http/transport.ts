import type { FailureKind } from '../transcript/records.ts';
/** One HTTP request as it goes out: nothing is added to it on the way but what HTTP itself needs. */
export interface HttpRequest {
  method: string;
  /** Absolute. */
  url: string;
  /** Lowercase names. */
  headers: Readonly<Record<string, string>>;
  body?: string;
}

/** An answer that arrived whole. */
export interface HttpAnswer {
  status: number;
  /** Lowercase names; several of one name are joined by `, `. */
  headers: Readonly<Record<string, string>>;
  /** As UTF-8. */
  body: string;
  /** Milliseconds from the sending of the request to the first byte of the answer. */
  firstByteMs: number;
  /** Milliseconds from the sending of the request to the last byte of the answer. */
  totalMs: number;
}

export interface HttpFailure {
  failure: FailureKind;
  /** In words, for a person. */
  message: string;
  totalMs: number;
}

export interface SendLimits {
  /** For the whole exchange, first byte to last. */
  timeoutMs: number;
  maxBodyBytes: number;
  signal?: AbortSignal;
}

/** Carries requests to the target. Follows no redirects, keeps no cookies, repeats nothing, throws nothing. */
export interface Transport {
  send(request: HttpRequest, limits: SendLimits): Promise<HttpAnswer | HttpFailure>;
  /** Milliseconds that a TCP connection to the host of `url` takes, or undefined where it cannot be known. */
  roundTripMs(url: string, timeoutMs: number): Promise<number | undefined>;
  close(): Promise<void>;
}
