import { loadCatalog } from '../../config/load.ts';
import { sellingPlatforms } from '../../config/platforms.ts';
import type { Config } from '../../config/schema.ts';
import type { Environment } from '../../config/settings.ts';
import type { ImageImport } from '../../drivers/kit/driver-definition.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Diagnosis } from '../../ports/diagnosis.ts';
import { Fatal } from '../../ports/errors.ts';
import type { Log } from '../../ports/log.ts';
import { configuredDriver } from './driver-settings.ts';

/** Imports an image into the named platform, or into the only one. @throws {Fatal} */
export function importImage(
  config: Config,
  image: ImageImport & { platform: string | undefined },
  { env, clock, log }: { env: Environment; clock: Clock; log: Log },
): AsyncIterable<Diagnosis> {
  const catalog = loadCatalog(config.catalog, sellingPlatforms(config));
  const started = { catalog, env, clock, log };
  const { definition, options, setting } = configuredDriver(config, image.platform, started);
  if (definition.importImage === undefined)
    throw new Fatal(
      `The driver ${definition.name} cannot import images. ${definition.imageAdvice ?? ''}`.trim(),
    );
  return definition.importImage(options, setting, image);
}
