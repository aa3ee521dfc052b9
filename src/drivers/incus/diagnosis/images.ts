import { z } from 'zod';
import type { Offer } from '../../../orchestrator/catalog/catalog.ts';
import { broken, type Diagnosis, ok, warning } from '../../../ports/diagnosis.ts';
import type { IncusApi } from '../api.ts';
import type { IncusConfig, IncusOffer } from '../options.ts';
import { imageOf } from '../translate.ts';
import { failed } from './failed.ts';

const imageSchema = z.object({
  type: z.string(),
  properties: z
    .record(z.string(), z.string())
    .nullish()
    .transform((properties) => properties ?? {}),
});

/** Checks that each image of an offer exists, is of the offer's kind, and is not declared to lack cloud-init. */
export async function* diagnoseImages(
  api: IncusApi,
  offers: readonly { offer: Offer; machine: IncusOffer }[],
  options: IncusConfig,
): AsyncGenerator<Diagnosis> {
  const kindsByAlias = new Map<string, Set<string>>();
  for (const { offer, machine } of offers)
    for (const image of offer.osOptions) {
      const { alias } = imageOf(image, machine, options);
      kindsByAlias.set(alias, (kindsByAlias.get(alias) ?? new Set()).add(machine.kind));
    }
  for (const [alias, kinds] of kindsByAlias) yield await diagnoseImage(api, alias, kinds);
}

async function diagnoseImage(api: IncusApi, alias: string, kinds: ReadonlySet<string>): Promise<Diagnosis> {
  const subject = `image ${alias}`;
  const remedy = 'See the section on images in docs/how-to/incus.md.';
  try {
    const found = await api.image(alias);
    if (found === undefined) return broken(subject, 'No image has that alias or fingerprint.', remedy);
    const { type, properties } = imageSchema.parse(found);
    const others = [...kinds].filter((kind) => kind !== type);
    if (others.length > 0)
      return broken(
        subject,
        `Its type is ${type}, but an offer uses it for a ${others.join(' and a ')}.`,
        'Give the offer an image of the right type under `machine.images`.',
      );
    return properties['variant'] === 'default'
      ? warning(
          subject,
          'It is the variant default, which has no cloud-init: machines get no SSH keys.',
          remedy,
        )
      : ok(subject, `It exists, with type ${type}.`);
  } catch (error) {
    return failed(subject, error, remedy);
  }
}
