/** One HTTP request to a service of the cloud. */
export interface Sent {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Absolute. */
  url: string;
  headers: Readonly<Record<string, string>>;
  body: string | undefined;
  signal: AbortSignal;
}

export interface Answer {
  status: number;
  /** By their names in lower case. */
  headers: Readonly<Record<string, string>>;
  text: string;
}

export interface Transport {
  /** @throws {Error} whose `code` shows whether a connection was made */
  send(sent: Sent): Promise<Answer>;
  close(): Promise<void>;
}
