import { destination, type Logger, pino, stdSerializers } from 'pino';

const CENSORED = '[redacted]';
const SECRET_FIELDS = [
  'authorization',
  'api_key',
  'password',
  'access_token',
  'cloud_init',
  'cloudInit',
  'content',
  'ssh_keys',
  'sshKeys',
];

/**
 * Structured logs, one JSON object a line, on standard error: standard output is for what a person or script
 * reads. Nothing logs a body; what could carry a secret all the same is censored by name.
 */
export function createLog(level: string): Logger {
  const paths = SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]);
  const options = {
    level,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    redact: { paths, censor: CENSORED },
    serializers: { err: stdSerializers.err },
  };
  return pino(options, destination({ fd: 2, sync: true }));
}
