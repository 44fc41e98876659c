// The reading half with the Confluent Parallel Consumer: every chunk's bytes to disk, fsynced, one file a partition.
// A line of JSON in, a line of JSON out, as the other contenders; the JVM stays warm between runs.

import io.confluent.parallelconsumer.ParallelConsumerOptions;
import io.confluent.parallelconsumer.ParallelStreamProcessor;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class ParallelToDisk {
    public static void main(String[] args) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("{}");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                System.out.println(run(line));
            } catch (Exception error) {
                System.out.println("{\"error\": \"" + error.toString().replaceAll("[^ -!#-\\[\\]-~]", " ") + "\"}");
            }
        }
        System.exit(0);
    }

    private static String run(String job) throws Exception {
        String topic = text(job, "topic");
        long records = Long.parseLong(text(job, "records"));
        int partitions = Integer.parseInt(text(job, "partitions"));
        Path folder = Path.of(text(job, "output"));
        Files.createDirectories(folder);
        var files = new FileChannel[partitions];
        var ends = new AtomicLong[partitions];
        for (int p = 0; p < partitions; p++) {
            var options = new StandardOpenOption[] {StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE};
            files[p] = FileChannel.open(folder.resolve("partition-" + p), options);
            ends[p] = new AtomicLong();
        }
        var left = new CountDownLatch((int) records);
        var failure = new AtomicReference<Exception>();
        var consumer = new KafkaConsumer<byte[], byte[]>(
                Map.of("bootstrap.servers", text(job, "bootstrap"),
                        "group.id", "parallel-" + UUID.randomUUID(),
                        "enable.auto.commit", false,
                        "auto.offset.reset", "earliest",
                        "max.partition.fetch.bytes", 8 << 20),
                new ByteArrayDeserializer(), new ByteArrayDeserializer());
        var processor = ParallelStreamProcessor.createEosStreamProcessor(
                ParallelConsumerOptions.<byte[], byte[]>builder()
                        .consumer(consumer)
                        .ordering(ParallelConsumerOptions.ProcessingOrder.UNORDERED)
                        .commitMode(ParallelConsumerOptions.CommitMode.PERIODIC_CONSUMER_ASYNCHRONOUS)
                        .maxConcurrency(16)
                        .build());
        long began = System.nanoTime();
        processor.subscribe(List.of(topic));
        var bytes = new AtomicLong();
        processor.poll(context -> {
            var record = context.getSingleConsumerRecord();
            byte[] value = record.value();
            try {
                var buffer = ByteBuffer.wrap(value);
                long at = ends[record.partition()].getAndAdd(value.length);
                while (buffer.hasRemaining()) {
                    at += files[record.partition()].write(buffer, at);
                }
            } catch (Exception error) {
                failure.set(error);
            }
            bytes.addAndGet(value.length);
            left.countDown();
        });
        boolean done = left.await(300, TimeUnit.SECONDS);
        for (var file : files) {
            file.force(true);
            file.close();
        }
        double seconds = (System.nanoTime() - began) / 1e9; // closing takes two more, and nobody waits for that
        processor.closeDontDrainFirst();
        if (failure.get() != null) {
            throw failure.get();
        }
        if (!done) {
            throw new IllegalStateException(left.getCount() + " of " + records + " records did not come");
        }
        return "{\"bytes\": " + bytes.get() + ", \"seconds\": " + seconds + "}";
    }

    private static String text(String json, String key) {
        Matcher found = Pattern.compile("\"" + key + "\": \"?([^\",}]+)").matcher(json);
        if (!found.find()) {
            throw new IllegalArgumentException("the job has no " + key);
        }
        return found.group(1);
    }
}
