import type { Log } from '../../ports/log.ts';
import type { Tracing } from '../../ports/tracing.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Opens the export of traces to the OTLP/HTTP collector of OTEL_EXPORTER_OTLP_ENDPOINT or
 * OTEL_EXPORTER_OTLP_TRACES_ENDPOINT. Undefined if neither is set: OpenTelemetry is then not loaded. The library reads
 * the other variables from the process's environment.
 */
export async function openTracing(
  env: Environment,
  { service, version, log }: { service: string; version: string; log: Log },
): Promise<Tracing | undefined> {
  const base = env['OTEL_EXPORTER_OTLP_ENDPOINT'];
  const url = env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] || (base && `${base.replace(/\/$/, '')}/v1/traces`);
  if (!url) return undefined;
  try {
    const { OtlpTracing } = await import('./otlp-tracing.ts');
    return new OtlpTracing(url, env, { service, version, log });
  } catch (error) {
    log.warn({ err: error }, 'serving without traces: check the OTEL_… variables');
    return undefined;
  }
}
