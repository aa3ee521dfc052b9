/** Structured logging with pino's signature. Fields never contain a key, a password or the contents of cloud_init. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
