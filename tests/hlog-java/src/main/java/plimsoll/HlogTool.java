package plimsoll;

import java.io.File;
import java.io.FileNotFoundException;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;
import org.HdrHistogram.AbstractHistogram;
import org.HdrHistogram.EncodableHistogram;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogReader;
import org.HdrHistogram.HistogramLogWriter;

/**
 * The Java side of the .hlog interoperability tests: summarises a log as the reference reader sees it, or writes a log with the
 * reference writer. Both print the same table, so that a test has one thing to parse.
 */
public final class HlogTool {
    private static final String USAGE = String.join(
            System.lineSeparator(),
            "usage: read FILE                          summarise every interval of a log",
            "       read FILE relative FROM_S TO_S     intervals that start FROM_S to TO_S seconds after the log's StartTime",
            "       read FILE absolute FROM_S TO_S     intervals that start between two instants, in seconds since the epoch",
            "       write FILE                         write a tagged log and summarise what went into it");

    private HlogTool() {}

    public static void main(String[] args) throws FileNotFoundException {
        Summary summary;
        if (args.length == 2 && args[0].equals("read")) {
            summary = read(args[1], HistogramLogReader::nextIntervalHistogram);
        } else if (args.length == 5 && args[0].equals("read") && args[2].equals("relative")) {
            double fromS = Double.parseDouble(args[3]);
            double toS = Double.parseDouble(args[4]);
            summary = read(args[1], reader -> reader.nextIntervalHistogram(fromS, toS));
        } else if (args.length == 5 && args[0].equals("read") && args[2].equals("absolute")) {
            double fromS = Double.parseDouble(args[3]);
            double toS = Double.parseDouble(args[4]);
            summary = read(args[1], reader -> reader.nextAbsoluteIntervalHistogram(fromS, toS));
        } else if (args.length == 2 && args[0].equals("write")) {
            summary = SampleLog.write(args[1]);
        } else {
            System.err.println("cannot understand the arguments " + Arrays.toString(args));
            System.err.println(USAGE);
            System.exit(2);
            return;
        }
        summary.print();
    }

    /** How the next interval is taken from a log: with or without a time filter. Null at the end. */
    private interface NextInterval {
        EncodableHistogram from(HistogramLogReader reader);
    }

    private static Summary read(String path, NextInterval next) throws FileNotFoundException {
        Summary summary = new Summary();
        try (HistogramLogReader reader = new HistogramLogReader(new File(path))) {
            for (EncodableHistogram interval = next.from(reader); interval != null; interval = next.from(reader)) {
                summary.add((AbstractHistogram) interval);
            }
        }
        return summary;
    }

    /** Per tag: everything recorded under it, merged. Values are as recorded (ns in our logs), instants ms since the epoch. */
    private static final class Summary {
        private final Map<String, Histogram> perTag = new TreeMap<>();

        void add(AbstractHistogram interval) {
            String tag = interval.getTag() == null ? "" : interval.getTag();
            Histogram merged = perTag.computeIfAbsent(tag, unused -> new Histogram(interval.getNumberOfSignificantValueDigits()));
            // add() does not widen the time span of its target.
            merged.setStartTimeStamp(Math.min(merged.getStartTimeStamp(), interval.getStartTimeStamp()));
            merged.setEndTimeStamp(Math.max(merged.getEndTimeStamp(), interval.getEndTimeStamp()));
            merged.add(interval);
        }

        void print() {
            System.out.print("tag\tcount\tp50\tp99\tmax\tfirst_start_ms\tlast_end_ms\n");
            perTag.forEach((tag, merged) -> System.out.print(String.join(
                            "\t",
                            tag,
                            Long.toString(merged.getTotalCount()),
                            Long.toString(merged.getValueAtPercentile(50)),
                            Long.toString(merged.getValueAtPercentile(99)),
                            Long.toString(merged.getMaxValue()),
                            Long.toString(merged.getStartTimeStamp()),
                            Long.toString(merged.getEndTimeStamp()))
                    + "\n"));
        }
    }

    /** A log of one-second intervals with two tags, the same at every run. */
    private static final class SampleLog {
        private static final long START_MS = 1_700_000_000_000L;
        private static final int INTERVALS = 5;
        private static final int VALUES_PER_INTERVAL = 1_000;
        private static final double NS_PER_MS = 1e6;

        static Summary write(String path) throws FileNotFoundException {
            Summary summary = new Summary();
            HistogramLogWriter log = new HistogramLogWriter(path);
            log.outputComment("[Logged by the Java reference writer]");
            log.outputLogFormatVersion();
            log.outputStartTime(START_MS);
            log.setBaseTime(START_MS);
            log.outputBaseTime(START_MS);
            log.outputLegend();
            for (int second = 0; second < INTERVALS; second++) {
                for (String tag : new String[] {"query.service", "query.response"}) {
                    Histogram interval = interval(tag, second);
                    log.outputIntervalHistogram(
                            interval.getStartTimeStamp() / 1000.0 - START_MS / 1000.0,
                            interval.getEndTimeStamp() / 1000.0 - START_MS / 1000.0,
                            interval,
                            NS_PER_MS);
                    summary.add(interval);
                }
            }
            log.close();
            return summary;
        }

        /** Service times from 50 us on; responses ten times that, so that the tags cannot be mixed up unseen. */
        private static Histogram interval(String tag, int second) {
            Histogram histogram = new Histogram(3);
            histogram.setTag(tag);
            histogram.setStartTimeStamp(START_MS + second * 1000L);
            histogram.setEndTimeStamp(START_MS + (second + 1) * 1000L);
            long firstNs = tag.endsWith(".response") ? 500_000 : 50_000;
            for (int i = 0; i < VALUES_PER_INTERVAL; i++) {
                histogram.recordValue(firstNs * (1 + second) + 997L * i * i);
            }
            return histogram;
        }
    }
}
